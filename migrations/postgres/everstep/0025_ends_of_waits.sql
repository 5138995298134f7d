-- The ends of parked waits, and queues whose parked workflows give up their slots.
SET LOCAL lock_timeout = '3s';

-- Queues whose workflows leave their slots while they are parked.
CREATE TABLE IF NOT EXISTS {schema}.slot_releasing_queues (
  name TEXT PRIMARY KEY
);

-- The waits of a workflow end when it is no longer parked, whatever program changes it.
CREATE OR REPLACE FUNCTION {schema}.everstep_end_waits() RETURNS TRIGGER
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
BEGIN
  DELETE FROM {schema}.parked_waits AS p WHERE p.workflow_uuid = NEW.workflow_uuid;
  RETURN NULL;
END;
$body$;
CREATE OR REPLACE TRIGGER everstep_end_waits
AFTER UPDATE ON {schema}.workflow_status
FOR EACH ROW
WHEN (OLD.status = 'DELAYED' AND NEW.status <> 'DELAYED' AND OLD.owner_xid LIKE '%.%')
EXECUTE FUNCTION {schema}.everstep_end_waits();

-- Locks workflows before their waits, and in the order of their IDs: other commits that end the same waits do so too, and
-- wait instead of being a deadlock.
CREATE OR REPLACE FUNCTION {schema}.everstep_wake_parked(keys TEXT[]) RETURNS VOID
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
DECLARE
  woken RECORD;
BEGIN
  FOR woken IN
    WITH waiting AS MATERIALIZED (
      SELECT w.workflow_uuid AS id
      FROM {schema}.workflow_status AS w
      WHERE w.workflow_uuid IN (SELECT p.workflow_uuid FROM {schema}.parked_waits AS p WHERE p.wait_key = ANY (keys))
      ORDER BY w.workflow_uuid
      FOR NO KEY UPDATE OF w
    ), roused AS (
      UPDATE {schema}.workflow_status AS w
      SET status = 'ENQUEUED'
      FROM waiting
      WHERE w.workflow_uuid = waiting.id
        AND CASE WHEN w.status = 'DELAYED' AND w.owner_xid LIKE '%.%' THEN TRUE ELSE FALSE END
      RETURNING w.queue_name, w.queue_partition_key
    )
    SELECT DISTINCT roused.queue_name AS queue, roused.queue_partition_key AS partition_key FROM roused
  LOOP
    NULL;
-- if listen_notify
    IF pg_notification_queue_usage() <= 0.5 AND octet_length(woken.queue) + octet_length(COALESCE(woken.partition_key, '')) < 1000 THEN
      PERFORM pg_notify('everstep_queues', CASE
        WHEN woken.partition_key IS NULL THEN json_build_array(woken.queue)
        ELSE json_build_array(woken.queue, woken.partition_key)
      END::TEXT);
    END IF;
-- end if
  END LOOP;
END;
$body$;
