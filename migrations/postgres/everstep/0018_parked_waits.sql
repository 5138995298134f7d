-- What parked workflows wait for besides a time. Triggers wake them in the commit that brings it, whatever program that is
-- of, so that no wake-up is lost. A workflow parks with a lock on the row that such a commit has to lock as well:
-- its own for a message, that of the other workflow for an event or an outcome.
SET LOCAL lock_timeout = '3s';

CREATE TABLE IF NOT EXISTS {schema}.parked_waits (
  wait_key TEXT NOT NULL,
  workflow_uuid TEXT NOT NULL
    REFERENCES {schema}.workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  kind TEXT NOT NULL,
  awaited_uuid TEXT NOT NULL,
  awaited_name TEXT,
  PRIMARY KEY (wait_key, workflow_uuid)
);
CREATE INDEX IF NOT EXISTS idx_parked_waits_workflow ON {schema}.parked_waits (workflow_uuid);

-- A workflow whose outcome no parked workflow waits for costs its end nothing.
ALTER TABLE {schema}.workflow_status ADD COLUMN IF NOT EXISTS has_parked_waiter BOOLEAN;

-- With the rights of the owner: who may send a message need not have those to wake its receiver. Without sequential scans:
-- a plan that was made while the table was small is kept.
CREATE OR REPLACE FUNCTION {schema}.everstep_wake_parked(keys TEXT[]) RETURNS VOID
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
DECLARE
  woken RECORD;
BEGIN
  FOR woken IN
    WITH waits AS (
      DELETE FROM {schema}.parked_waits AS p WHERE p.wait_key = ANY (keys) RETURNING p.workflow_uuid
    ), roused AS (
      UPDATE {schema}.workflow_status AS w
      SET status = 'ENQUEUED'
      WHERE w.workflow_uuid IN (SELECT waits.workflow_uuid FROM waits)
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
REVOKE ALL ON FUNCTION {schema}.everstep_wake_parked(TEXT[]) FROM PUBLIC;

CREATE OR REPLACE FUNCTION {schema}.everstep_wake_receivers() RETURNS TRIGGER
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
DECLARE
  keys TEXT[] := ARRAY(
    SELECT p.wait_key
    FROM {schema}.parked_waits AS p
    WHERE p.wait_key = ANY (ARRAY(SELECT 'message:' || s.destination_uuid || '::' || s.topic FROM sent AS s))
  );
BEGIN
  IF cardinality(keys) > 0 THEN
    PERFORM {schema}.everstep_wake_parked(keys);
  END IF;
  RETURN NULL;
END;
$body$;

CREATE OR REPLACE FUNCTION {schema}.everstep_wake_event_readers() RETURNS TRIGGER
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
DECLARE
  keys TEXT[] := ARRAY(
    SELECT p.wait_key
    FROM {schema}.parked_waits AS p
    WHERE p.wait_key = ANY (ARRAY(SELECT 'event:' || s.workflow_uuid || '::' || s.key FROM events AS s))
  );
BEGIN
  IF cardinality(keys) > 0 THEN
    PERFORM {schema}.everstep_wake_parked(keys);
  END IF;
  RETURN NULL;
END;
$body$;

CREATE OR REPLACE FUNCTION {schema}.everstep_wake_result_waiters() RETURNS TRIGGER
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
  PERFORM {schema}.everstep_wake_parked(ARRAY['outcome:' || NEW.workflow_uuid]);
  RETURN NULL;
END;
$body$;

-- Once per statement, and after the check of the foreign key, which waits for a receiver that is parking.
CREATE OR REPLACE TRIGGER everstep_wake_receivers
AFTER INSERT ON {schema}.notifications
REFERENCING NEW TABLE AS sent
FOR EACH STATEMENT
EXECUTE FUNCTION {schema}.everstep_wake_receivers();

-- An event that had a value before has woken its readers with that.
CREATE OR REPLACE TRIGGER everstep_wake_event_readers
AFTER INSERT ON {schema}.workflow_events
REFERENCING NEW TABLE AS events
FOR EACH STATEMENT
EXECUTE FUNCTION {schema}.everstep_wake_event_readers();

CREATE OR REPLACE TRIGGER everstep_wake_result_waiters
AFTER UPDATE ON {schema}.workflow_status
FOR EACH ROW
WHEN (OLD.has_parked_waiter
  AND OLD.status IN ('ENQUEUED', 'DELAYED', 'PENDING')
  AND NEW.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING'))
EXECUTE FUNCTION {schema}.everstep_wake_result_waiters();
