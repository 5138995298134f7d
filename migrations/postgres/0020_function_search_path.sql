-- Functions resolve names in the system catalog only, whatever the caller's search_path is. Otherwise a caller
-- could make them call a function of their own.
ALTER FUNCTION {schema}.enqueue_workflow(
  TEXT, TEXT, JSON[], JSON, TEXT, TEXT, TEXT, TEXT, BIGINT, BIGINT, TEXT, INTEGER, TEXT
) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION {schema}.send_message(TEXT, JSON, TEXT, TEXT) SET search_path = pg_catalog, pg_temp;
-- if listen_notify

-- Written out in full, not altered: an earlier run may have left the triggers and their functions out.
CREATE OR REPLACE FUNCTION {schema}.notifications_function() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  payload TEXT := NEW.destination_uuid || '::' || NEW.topic;
BEGIN
  IF octet_length(payload) < 8000 THEN
    PERFORM pg_notify('dbos_notifications_channel', payload);
  END IF;
  RETURN NEW;
END;
$body$;

CREATE OR REPLACE FUNCTION {schema}.workflow_events_function() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  payload TEXT := NEW.workflow_uuid || '::' || NEW.key;
BEGIN
  IF octet_length(payload) < 8000 THEN
    PERFORM pg_notify('dbos_workflow_events_channel', payload);
  END IF;
  RETURN NEW;
END;
$body$;
-- end if
