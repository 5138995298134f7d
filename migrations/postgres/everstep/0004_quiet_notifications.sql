-- Everstep tells of its own messages apart from the commits that contain them, because NOTIFY serialises commits. Its
-- sessions therefore set everstep.quiet; for rows that any other program inserts, the trigger notifies as before.
-- if listen_notify
CREATE OR REPLACE FUNCTION {schema}.notifications_function() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  payload TEXT := NEW.destination_uuid || '::' || NEW.topic;
BEGIN
  IF current_setting('everstep.quiet', TRUE) = 'on' THEN
    RETURN NEW;
  END IF;
  IF octet_length(payload) < 8000 THEN
    PERFORM pg_notify('dbos_notifications_channel', payload);
  END IF;
  RETURN NEW;
END;
$body$;
-- end if
