-- Parked workflows are woken by the commit of what they wait for, and not before it. A transaction of the application that has
-- sent a message locked the receiver until it ended: nobody could cancel it meanwhile, and two transactions that sent messages
-- to the same workflows in different orders were a deadlock.
SET LOCAL lock_timeout = '3s';

-- The waits that a transaction ends. Its commit deletes them again.
CREATE TABLE IF NOT EXISTS {schema}.parked_wakes (
  wait_key TEXT NOT NULL
);

-- Locks workflows before their waits, and in the order of their IDs: commits that wake the same workflows wait for each other
-- instead of being a deadlock. What others lock for longer, or have changed since the snapshot of the transaction, is left to
-- the engines, which look now and then for what has come all the same: no commit fails because of a workflow that is parked.
CREATE OR REPLACE FUNCTION {schema}.everstep_wake_parked(keys TEXT[]) RETURNS VOID
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET lock_timeout = '500ms'
AS $body$
DECLARE
  ids TEXT[];
  woken RECORD;
BEGIN
  BEGIN
    ids := ARRAY(
      SELECT w.workflow_uuid
      FROM {schema}.workflow_status AS w
      WHERE w.workflow_uuid IN (SELECT p.workflow_uuid FROM {schema}.parked_waits AS p WHERE p.wait_key = ANY (keys))
      ORDER BY w.workflow_uuid
      FOR NO KEY UPDATE OF w);
  EXCEPTION WHEN lock_not_available OR deadlock_detected OR serialization_failure THEN
    BEGIN
      ids := ARRAY(
        SELECT w.workflow_uuid
        FROM {schema}.workflow_status AS w
        WHERE w.workflow_uuid IN (SELECT p.workflow_uuid FROM {schema}.parked_waits AS p WHERE p.wait_key = ANY (keys))
        FOR NO KEY UPDATE OF w SKIP LOCKED);
    EXCEPTION WHEN serialization_failure THEN
      RETURN;
    END;
  END;
  FOR woken IN
    WITH roused AS (
      UPDATE {schema}.workflow_status AS w
      SET status = 'ENQUEUED'
      WHERE w.workflow_uuid = ANY (ids)
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

-- All that the transaction has noted, in its first call.
CREATE OR REPLACE FUNCTION {schema}.everstep_wake_at_commit() RETURNS TRIGGER
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  keys TEXT[];
BEGIN
  IF TG_RELID <> '{schema}.parked_wakes'::REGCLASS THEN
    RAISE insufficient_privilege USING MESSAGE = 'only triggers of parked_wakes may call this function';
  END IF;
  WITH noted AS (DELETE FROM {schema}.parked_wakes RETURNING wait_key)
  SELECT array_agg(noted.wait_key) INTO keys FROM noted;
  IF keys IS NOT NULL THEN
    PERFORM {schema}.everstep_wake_parked(keys);
  END IF;
  RETURN NULL;
END;
$body$;

DROP TRIGGER IF EXISTS everstep_wake_at_commit ON {schema}.parked_wakes;
CREATE CONSTRAINT TRIGGER everstep_wake_at_commit
AFTER INSERT ON {schema}.parked_wakes
DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW
EXECUTE FUNCTION {schema}.everstep_wake_at_commit();

CREATE OR REPLACE FUNCTION {schema}.everstep_wake_receivers() RETURNS TRIGGER
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
BEGIN
  IF TG_RELID <> '{schema}.notifications'::REGCLASS THEN
    RAISE insufficient_privilege USING MESSAGE = 'only triggers of notifications may call this function';
  END IF;
  INSERT INTO {schema}.parked_wakes (wait_key)
  SELECT p.wait_key
  FROM {schema}.parked_waits AS p
  WHERE p.wait_key = ANY (ARRAY(SELECT 'message:' || s.destination_uuid || '::' || s.topic FROM sent AS s));
  RETURN NULL;
END;
$body$;

CREATE OR REPLACE FUNCTION {schema}.everstep_wake_event_readers() RETURNS TRIGGER
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
BEGIN
  IF TG_RELID <> '{schema}.workflow_events'::REGCLASS THEN
    RAISE insufficient_privilege USING MESSAGE = 'only triggers of workflow_events may call this function';
  END IF;
  INSERT INTO {schema}.parked_wakes (wait_key)
  SELECT p.wait_key
  FROM {schema}.parked_waits AS p
  WHERE p.wait_key = ANY (ARRAY(SELECT 'event:' || s.workflow_uuid || '::' || s.key FROM events AS s));
  RETURN NULL;
END;
$body$;

CREATE OR REPLACE FUNCTION {schema}.everstep_wake_result_waiters() RETURNS TRIGGER
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
  IF TG_RELID <> '{schema}.workflow_status'::REGCLASS THEN
    RAISE insufficient_privilege USING MESSAGE = 'only triggers of workflow_status may call this function';
  END IF;
  INSERT INTO {schema}.parked_wakes (wait_key) VALUES ('outcome:' || OLD.workflow_uuid);
  RETURN NULL;
END;
$body$;

-- A workflow that is deleted has no outcome, and its handles fail.
CREATE OR REPLACE TRIGGER everstep_wake_waiters_of_deleted
AFTER DELETE ON {schema}.workflow_status
FOR EACH ROW
WHEN (OLD.has_parked_waiter AND OLD.status IN ('ENQUEUED', 'DELAYED', 'PENDING'))
EXECUTE FUNCTION {schema}.everstep_wake_result_waiters();
