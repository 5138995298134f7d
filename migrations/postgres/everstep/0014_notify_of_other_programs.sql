-- Programs that do not send Everstep's notifications (DBOS, plain SQL) change rows that its engines wait for. Triggers send
-- the notifications for them. They skip sessions that set everstep.quiet, which are Everstep's own, and never fail the
-- statement of the other program.
-- if listen_notify
-- Creating a trigger waits for the transactions that write to the table, and new ones wait behind it. Give up and retry instead.
SET LOCAL lock_timeout = '3s';

CREATE OR REPLACE FUNCTION {schema}.everstep_notify_of_workflow() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  id TEXT := COALESCE(NEW.workflow_uuid, OLD.workflow_uuid);
  queue TEXT;
  partition_key TEXT;
  place JSON;
  sent INTEGER;
BEGIN
  -- DBOS before version 5 leaves the owner token in the row when it enqueues and claims. Everstep would take the workflow
  -- for its own.
  IF NEW.owner_xid LIKE '%.%' AND NEW.owner_xid = OLD.owner_xid AND NEW.status <> OLD.status
    AND NEW.status IN ('ENQUEUED', 'DELAYED', 'PENDING') THEN
    BEGIN
      UPDATE {schema}.workflow_status AS w
      SET owner_xid = NULL
      WHERE w.workflow_uuid = NEW.workflow_uuid AND w.owner_xid = NEW.owner_xid;
    EXCEPTION
      WHEN OTHERS THEN
        NULL;
    END;
  END IF;

  -- With a full queue of notifications, the commit would fail.
  IF pg_notification_queue_usage() > 0.5 THEN
    RETURN NULL;
  END IF;
  BEGIN
    -- A transaction that changes more rows than this sends notifications without IDs, which Postgres sends once.
    sent := COALESCE(NULLIF(current_setting('everstep.notified', TRUE), ''), '0')::INTEGER;
    IF sent >= 1000 OR octet_length(id) >= 8000 THEN
      id := '';
    END IF;
    IF sent < 1000 THEN
      PERFORM set_config('everstep.notified', (sent + 1)::TEXT, TRUE);
    END IF;

    IF NEW.status = 'ENQUEUED' THEN
      queue := NEW.queue_name;
      partition_key := NEW.queue_partition_key;
    ELSIF OLD.status = 'PENDING' AND NEW.status IS DISTINCT FROM 'PENDING' THEN
      -- Its slot is free.
      queue := OLD.queue_name;
      partition_key := OLD.queue_partition_key;
    END IF;
    IF queue IS NOT NULL THEN
      place := CASE
        WHEN partition_key IS NULL OR sent >= 1000 OR octet_length(partition_key) > 1000 THEN json_build_array(queue)
        ELSE json_build_array(queue, partition_key)
      END;
      IF octet_length(place::TEXT) < 8000 THEN
        PERFORM pg_notify('everstep_queues', place::TEXT);
      END IF;
    END IF;
    IF NEW.status = 'DELAYED' THEN
      PERFORM pg_notify('everstep_delays', '');
    END IF;
    IF OLD.status = 'PENDING' AND OLD.owner_xid LIKE '%.%'
      AND (NEW.status IS DISTINCT FROM OLD.status OR NEW.owner_xid IS DISTINCT FROM OLD.owner_xid) THEN
      PERFORM pg_notify('everstep_changes', id);
    END IF;
    IF OLD.status IN ('ENQUEUED', 'DELAYED', 'PENDING')
      AND COALESCE(NEW.status, 'DELETED') NOT IN ('ENQUEUED', 'DELAYED', 'PENDING') THEN
      PERFORM pg_notify('everstep_outcomes', id);
    END IF;
  EXCEPTION
    WHEN OTHERS THEN
      -- Engines also look without being told.
      NULL;
  END;
  RETURN NULL;
END;
$body$;

-- Row triggers: a transition table would copy the rows of Everstep's own statements, too. Their conditions are evaluated
-- before anything is called or queued.
CREATE OR REPLACE TRIGGER everstep_workflow_inserted
AFTER INSERT ON {schema}.workflow_status
FOR EACH ROW
WHEN (current_setting('everstep.quiet', TRUE) IS DISTINCT FROM 'on' AND NEW.status IN ('ENQUEUED', 'DELAYED'))
EXECUTE FUNCTION {schema}.everstep_notify_of_workflow();

CREATE OR REPLACE TRIGGER everstep_workflow_updated
AFTER UPDATE ON {schema}.workflow_status
FOR EACH ROW
WHEN (current_setting('everstep.quiet', TRUE) IS DISTINCT FROM 'on' AND (
  OLD.status IS DISTINCT FROM NEW.status
  OR OLD.owner_xid IS DISTINCT FROM NEW.owner_xid
  OR OLD.delay_until_epoch_ms IS DISTINCT FROM NEW.delay_until_epoch_ms
  OR OLD.queue_name IS DISTINCT FROM NEW.queue_name
  OR OLD.queue_partition_key IS DISTINCT FROM NEW.queue_partition_key
))
EXECUTE FUNCTION {schema}.everstep_notify_of_workflow();

CREATE OR REPLACE TRIGGER everstep_workflow_deleted
AFTER DELETE ON {schema}.workflow_status
FOR EACH ROW
WHEN (
  current_setting('everstep.quiet', TRUE) IS DISTINCT FROM 'on' AND OLD.status IN ('ENQUEUED', 'DELAYED', 'PENDING')
)
EXECUTE FUNCTION {schema}.everstep_notify_of_workflow();

CREATE OR REPLACE FUNCTION {schema}.everstep_notify_of_schedule() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  name TEXT := COALESCE(NEW.schedule_name, OLD.schedule_name);
BEGIN
  IF pg_notification_queue_usage() > 0.5 THEN
    RETURN NULL;
  END IF;
  IF octet_length(name) >= 8000 OR NEW.schedule_name <> OLD.schedule_name THEN
    name := '';
  END IF;
  PERFORM pg_notify('everstep_schedules', name);
  RETURN NULL;
EXCEPTION
  WHEN OTHERS THEN
    RETURN NULL;
END;
$body$;

-- Not the time of the last firing, which changes with each one.
CREATE OR REPLACE TRIGGER everstep_schedule_changed
AFTER INSERT OR DELETE OR UPDATE OF
  schedule_id, schedule_name, workflow_name, workflow_class_name, schedule, status, context, automatic_backfill,
  cron_timezone, queue_name, application_name
ON {schema}.workflow_schedules
FOR EACH ROW
WHEN (current_setting('everstep.quiet', TRUE) IS DISTINCT FROM 'on')
EXECUTE FUNCTION {schema}.everstep_notify_of_schedule();

CREATE OR REPLACE FUNCTION {schema}.everstep_notify_of_queues() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
  IF pg_notification_queue_usage() <= 0.5 THEN
    PERFORM pg_notify('everstep_queue_changes', '');
  END IF;
  RETURN NULL;
EXCEPTION
  WHEN OTHERS THEN
    RETURN NULL;
END;
$body$;

CREATE OR REPLACE TRIGGER everstep_queues_changed
AFTER INSERT OR UPDATE OR DELETE ON {schema}.queues
FOR EACH STATEMENT
WHEN (current_setting('everstep.quiet', TRUE) IS DISTINCT FROM 'on')
EXECUTE FUNCTION {schema}.everstep_notify_of_queues();
-- end if
