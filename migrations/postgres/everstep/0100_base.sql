-- Everstep's tables beside those that it shares with DBOS, and its triggers and functions on both.
--
-- Creating a trigger waits for the transactions that write to the table, and new ones wait behind it. Give up and retry
-- instead.
SET LOCAL lock_timeout = '3s';

-- Engines.

-- The engines that are or were running: one row for each launch. An engine prolongs its lease by the database's clock; when
-- the lease has ended, any other engine takes over its workflows. There are few engines, so none is looked up by its lease:
-- without an index, and with room in the page, a renewal touches no index.
CREATE TABLE IF NOT EXISTS {schema}.executors (
  incarnation_id TEXT PRIMARY KEY,
  executor_id TEXT NOT NULL,
  application_name TEXT,
  application_version TEXT,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started_at BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT,
  heartbeat_at BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT,
  lease_until_epoch_ms BIGINT NOT NULL,
  metadata TEXT
) WITH (fillfactor = 50);

CREATE INDEX IF NOT EXISTS idx_executors_executor_id ON {schema}.executors (executor_id);

-- Sessions whose connection was lost during a commit. A copy of the commit that reaches the server late finds its session
-- here, and refuses itself.
CREATE TABLE IF NOT EXISTS {schema}.fenced_sessions (
  session_key BIGINT PRIMARY KEY,
  fenced_at BIGINT NOT NULL
);

-- Tells this system database from others whose engines use the same application database. It has one row.
CREATE TABLE IF NOT EXISTS {schema}.system_identity (
  key TEXT PRIMARY KEY,
  id TEXT NOT NULL
);

INSERT INTO {schema}.system_identity (key, id)
VALUES ('system', replace(gen_random_uuid()::text, '-', ''))
ON CONFLICT DO NOTHING;

-- Workflows and queues.

-- Every workflow is updated when it ends. Its new version then fits into the page of the old one, and the WAL holds only
-- what differs. Dead versions are removed after a twentieth of the rows has changed, not after a fifth.
ALTER TABLE {schema}.workflow_status SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

CREATE TABLE IF NOT EXISTS {schema}.paused_queues (
  name TEXT PRIMARY KEY,
  paused_at BIGINT NOT NULL
);

-- Queues whose workflows leave their slots while they are parked.
CREATE TABLE IF NOT EXISTS {schema}.slot_releasing_queues (
  name TEXT PRIMARY KEY
);

-- enqueue_workflow stores the input in both places: DBOS 4 reads workflow_status only, and DBOS 5 may have left the input of a
-- deleted workflow of the same ID in workflow_input, where it looks first.
CREATE OR REPLACE FUNCTION {schema}.enqueue_workflow(
  workflow_name TEXT,
  queue_name TEXT,
  positional_args JSON[] DEFAULT ARRAY[]::JSON[],
  named_args JSON DEFAULT '{}'::JSON,
  class_name TEXT DEFAULT NULL,
  config_name TEXT DEFAULT NULL,
  workflow_id TEXT DEFAULT NULL,
  app_version TEXT DEFAULT NULL,
  timeout_ms BIGINT DEFAULT NULL,
  deadline_epoch_ms BIGINT DEFAULT NULL,
  deduplication_id TEXT DEFAULT NULL,
  priority INTEGER DEFAULT NULL,
  queue_partition_key TEXT DEFAULT NULL,
  authenticated_user TEXT DEFAULT NULL,
  authenticated_roles TEXT DEFAULT NULL,
  delay_until_epoch_ms BIGINT DEFAULT NULL,
  application_name TEXT DEFAULT NULL
) RETURNS TEXT
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  id TEXT := COALESCE(workflow_id, gen_random_uuid()::TEXT);
  token TEXT := gen_random_uuid()::TEXT;
  found RECORD;
  now_ms BIGINT := (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT;
  input TEXT := json_build_object('positionalArgs', positional_args, 'namedArgs', named_args)::TEXT;
  place TEXT;
  roles JSON;
  -- About 30,000 years, as in the library.
  longest_ms CONSTANT BIGINT := 1000000000000000;
BEGIN
  IF workflow_name IS NULL OR workflow_name = '' THEN
    RAISE EXCEPTION 'Workflow name cannot be null or empty';
  END IF;
  IF queue_name IS NULL OR queue_name = '' THEN
    RAISE EXCEPTION 'Queue name cannot be null or empty';
  END IF;
  IF json_typeof(named_args) <> 'object' THEN
    RAISE EXCEPTION 'Named args must be a JSON object';
  END IF;
  IF workflow_id = '' THEN
    RAISE EXCEPTION 'Workflow ID cannot be an empty string if provided.';
  END IF;
  IF delay_until_epoch_ms < 0 THEN
    RAISE EXCEPTION 'delay_until_epoch_ms must be >= 0';
  END IF;
  IF delay_until_epoch_ms > longest_ms THEN
    RAISE EXCEPTION 'delay_until_epoch_ms must be <= %', longest_ms;
  END IF;
  IF timeout_ms NOT BETWEEN -longest_ms AND longest_ms THEN
    RAISE EXCEPTION 'timeout_ms must be <= %', longest_ms;
  END IF;
  IF deadline_epoch_ms NOT BETWEEN 0 AND longest_ms THEN
    RAISE EXCEPTION 'deadline_epoch_ms must be between 0 and %', longest_ms;
  END IF;
  IF authenticated_roles <> '' THEN
    BEGIN
      roles := authenticated_roles::JSON;
    EXCEPTION
      WHEN data_exception THEN
        roles := 'null'::JSON;
    END;
    IF json_typeof(roles) <> 'array' THEN
      RAISE EXCEPTION 'authenticated_roles must be a JSON array of strings, such as ["admin"]';
    END IF;
    IF EXISTS (SELECT 1 FROM json_array_elements(roles) AS listed(role) WHERE json_typeof(listed.role) <> 'string') THEN
      RAISE EXCEPTION 'authenticated_roles must be a JSON array of strings, such as ["admin"]';
    END IF;
  END IF;

  INSERT INTO {schema}.workflow_status AS workflow (
    workflow_uuid,
    status,
    name,
    inputs,
    serialization,
    class_name,
    config_name,
    queue_name,
    deduplication_id,
    priority,
    queue_partition_key,
    application_version,
    workflow_timeout_ms,
    workflow_deadline_epoch_ms,
    recovery_attempts,
    owner_xid,
    created_at,
    updated_at,
    authenticated_user,
    authenticated_roles,
    delay_until_epoch_ms,
    application_name
  ) VALUES (
    id,
    CASE WHEN enqueue_workflow.delay_until_epoch_ms IS NULL THEN 'ENQUEUED' ELSE 'DELAYED' END,
    workflow_name,
    input,
    'portable_json',
    enqueue_workflow.class_name,
    enqueue_workflow.config_name,
    enqueue_workflow.queue_name,
    enqueue_workflow.deduplication_id,
    COALESCE(enqueue_workflow.priority, 0),
    enqueue_workflow.queue_partition_key,
    app_version,
    timeout_ms,
    deadline_epoch_ms,
    0,
    token,
    now_ms,
    now_ms,
    enqueue_workflow.authenticated_user,
    enqueue_workflow.authenticated_roles,
    enqueue_workflow.delay_until_epoch_ms,
    enqueue_workflow.application_name
  )
  ON CONFLICT (workflow_uuid) DO UPDATE SET updated_at = EXCLUDED.updated_at
  RETURNING workflow.owner_xid, workflow.name, workflow.class_name, workflow.config_name, workflow.queue_name
  INTO found;

  -- Only the call that created the workflow gives it its input. A row that is there already was left by a
  -- deleted workflow of the same ID.
  IF found.owner_xid = token THEN
    INSERT INTO {schema}.workflow_input (workflow_uuid, inputs, retention_timestamp)
    VALUES (id, input, now_ms)
    ON CONFLICT (workflow_uuid) DO UPDATE
    SET inputs = EXCLUDED.inputs, retention_timestamp = EXCLUDED.retention_timestamp;

    place := CASE
      WHEN enqueue_workflow.queue_partition_key IS NULL THEN json_build_array(enqueue_workflow.queue_name)
      ELSE json_build_array(enqueue_workflow.queue_name, enqueue_workflow.queue_partition_key)
    END::TEXT;
    IF octet_length(place) < 8000 THEN
      PERFORM pg_notify('everstep_queues', place);
    END IF;
    RETURN id;
  END IF;

  IF found.name IS DISTINCT FROM workflow_name THEN
    RAISE EXCEPTION 'DBOS workflow conflict' USING
      DETAIL = format('Workflow %s already exists: it runs %s, not %s', id, found.name, workflow_name),
      ERRCODE = 'invalid_parameter_value';
  END IF;
  IF COALESCE(found.class_name, '') <> COALESCE(enqueue_workflow.class_name, '') THEN
    RAISE EXCEPTION 'DBOS workflow conflict' USING
      DETAIL = format(
        'Workflow %s already exists: it belongs to class %s, not %s', id, found.class_name, enqueue_workflow.class_name
      ),
      ERRCODE = 'invalid_parameter_value';
  END IF;
  IF COALESCE(found.config_name, '') <> COALESCE(enqueue_workflow.config_name, '') THEN
    RAISE EXCEPTION 'DBOS workflow conflict' USING
      DETAIL = format(
        'Workflow %s already exists: it belongs to instance %s, not %s',
        id, found.config_name, enqueue_workflow.config_name
      ),
      ERRCODE = 'invalid_parameter_value';
  END IF;
  IF found.queue_name <> enqueue_workflow.queue_name THEN
    RAISE WARNING 'Workflow % already exists in queue %; it was not enqueued in %',
      id, found.queue_name, enqueue_workflow.queue_name;
  END IF;
  RETURN id;
EXCEPTION
  WHEN unique_violation THEN
    RAISE EXCEPTION 'DBOS queue duplicated' USING
      DETAIL = format(
        'Workflow %s with queue %s and deduplication ID %s already exists', id, queue_name, deduplication_id
      ),
      ERRCODE = 'unique_violation';
END;
$body$;

-- Schedules.

-- What only Everstep knows of a schedule, and a counter by which processes see that schedules have changed.
CREATE TABLE IF NOT EXISTS {schema}.schedule_settings (
  schedule_id TEXT PRIMARY KEY,
  overlap TEXT NOT NULL,
  jitter_ms BIGINT NOT NULL
);

-- When each schedule fires next, which only code can tell. Engines write it for the view of timers.
CREATE TABLE IF NOT EXISTS {schema}.schedule_timers (
  schedule_id TEXT PRIMARY KEY
    REFERENCES {schema}.workflow_schedules (schedule_id) ON UPDATE CASCADE ON DELETE CASCADE,
  -- The time of the occurrence, which is part of its workflow's ID, and that time with the jitter.
  due_at BIGINT NOT NULL,
  fire_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS {schema}.change_counters (
  topic TEXT PRIMARY KEY,
  changes BIGINT NOT NULL
);

-- Messages.

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

CREATE OR REPLACE FUNCTION {schema}.send_message(
  destination_id TEXT,
  message JSON,
  topic TEXT DEFAULT NULL,
  message_id TEXT DEFAULT NULL
) RETURNS VOID
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  -- As DBOS.send makes it: where it could be split in two ways, the length of the key is added.
  id TEXT := message_id || '::' || destination_id;
BEGIN
  IF strpos(substr(id, strpos(id, '::') + 1), '::') > 0 THEN
    id := octet_length(message_id) || '::' || id;
  END IF;
  -- Earlier versions of this function stored the key alone.
  PERFORM 1
  FROM {schema}.notifications AS n
  WHERE n.message_uuid = message_id AND n.destination_uuid = destination_id;
  IF FOUND THEN
    RETURN;
  END IF;
  INSERT INTO {schema}.notifications (message_uuid, destination_uuid, topic, message, serialization)
  VALUES (
    COALESCE(id, gen_random_uuid()::TEXT),
    destination_id,
    COALESCE(send_message.topic, '__null__topic__'),
    send_message.message::TEXT,
    'portable_json'
  )
  ON CONFLICT (message_uuid) DO NOTHING;
EXCEPTION
  WHEN foreign_key_violation THEN
    RAISE EXCEPTION 'DBOS non-existent workflow' USING
      DETAIL = format('Destination workflow %s does not exist', destination_id),
      ERRCODE = 'foreign_key_violation';
END;
$body$;

-- Programs that do not send Everstep's notifications (DBOS, plain SQL) change rows that its engines wait for. Triggers send
-- the notifications for them. They skip sessions that set everstep.quiet, which are Everstep's own, and never fail the
-- statement of the other program.

-- if listen_notify
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

-- Parked workflows.

-- What parked workflows wait for besides a time. Triggers wake them in the commit that brings it, whatever program that is
-- of, so that no wake-up is lost. A workflow parks with a lock on the row that such a commit has to lock as well: its own
-- for a message, that of the other workflow for an event or an outcome.
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

CREATE OR REPLACE FUNCTION {schema}.everstep_end_waits() RETURNS TRIGGER
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
BEGIN
  IF TG_RELID <> '{schema}.workflow_status'::REGCLASS THEN
    RAISE insufficient_privilege USING MESSAGE = 'only triggers of workflow_status may call this function';
  END IF;
  DELETE FROM {schema}.parked_waits AS p WHERE p.workflow_uuid = NEW.workflow_uuid;
  RETURN NULL;
END;
$body$;

CREATE OR REPLACE TRIGGER everstep_end_waits
AFTER UPDATE ON {schema}.workflow_status
FOR EACH ROW
WHEN (OLD.status = 'DELAYED' AND NEW.status <> 'DELAYED' AND OLD.owner_xid LIKE '%.%')
EXECUTE FUNCTION {schema}.everstep_end_waits();

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

REVOKE ALL ON FUNCTION {schema}.everstep_wake_parked(TEXT[]) FROM PUBLIC;

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

-- Once per statement, and after the check of the foreign key, which waits for a receiver that is parking.
CREATE OR REPLACE TRIGGER everstep_wake_receivers
AFTER INSERT ON {schema}.notifications
REFERENCING NEW TABLE AS sent
FOR EACH STATEMENT
EXECUTE FUNCTION {schema}.everstep_wake_receivers();

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

-- An event that had a value before has woken its readers with that.
CREATE OR REPLACE TRIGGER everstep_wake_event_readers
AFTER INSERT ON {schema}.workflow_events
REFERENCING NEW TABLE AS events
FOR EACH STATEMENT
EXECUTE FUNCTION {schema}.everstep_wake_event_readers();

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

CREATE OR REPLACE TRIGGER everstep_wake_result_waiters
AFTER UPDATE ON {schema}.workflow_status
FOR EACH ROW
WHEN (OLD.has_parked_waiter
  AND OLD.status IN ('ENQUEUED', 'DELAYED', 'PENDING')
  AND NEW.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING'))
EXECUTE FUNCTION {schema}.everstep_wake_result_waiters();

-- A workflow that is deleted has no outcome, and its handles fail.
CREATE OR REPLACE TRIGGER everstep_wake_waiters_of_deleted
AFTER DELETE ON {schema}.workflow_status
FOR EACH ROW
WHEN (OLD.has_parked_waiter AND OLD.status IN ('ENQUEUED', 'DELAYED', 'PENDING'))
EXECUTE FUNCTION {schema}.everstep_wake_result_waiters();

-- Claims of programs other than Everstep, which do not know the lock under which engines claim from a queue with limits. They
-- count what runs in a snapshot, take rows, and commit. A trigger makes their claims take that lock, and refuses one that has
-- counted before an engine's claim, with an error that such programs get from each other: they try again.

-- The versions that other programs have run, so that engines know whose work waits.
CREATE TABLE IF NOT EXISTS {schema}.other_versions (
  version_name TEXT NOT NULL,
  application_name TEXT NOT NULL,
  PRIMARY KEY (version_name, application_name)
);

INSERT INTO {schema}.other_versions (version_name, application_name)
SELECT v.version_name, COALESCE(v.application_name, '') FROM {schema}.application_versions AS v
ON CONFLICT DO NOTHING;

-- The claims of engines from queues that other programs may serve as well.
CREATE TABLE IF NOT EXISTS {schema}.shared_queues (
  name TEXT PRIMARY KEY,
  -- How many more workflows engines have started than other programs, of late.
  ahead INTEGER NOT NULL DEFAULT 0,
  claimed_at BIGINT NOT NULL DEFAULT 0
);

CREATE OR REPLACE FUNCTION {schema}.everstep_note_other_version() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '500ms'
AS $body$
BEGIN
  IF TG_RELID <> '{schema}.application_versions'::REGCLASS THEN
    RAISE insufficient_privilege USING MESSAGE = 'only triggers of application_versions may call this function';
  END IF;
  BEGIN
    INSERT INTO {schema}.other_versions (version_name, application_name)
    VALUES (NEW.version_name, COALESCE(NEW.application_name, ''))
    ON CONFLICT DO NOTHING;
    -- Engines may have found that nobody takes what they leave.
    UPDATE {schema}.shared_queues SET ahead = 0 WHERE ahead > 0;
  EXCEPTION
    WHEN OTHERS THEN
      -- Never fail the launch of another program.
      NULL;
  END;
  RETURN NEW;
END;
$body$;

-- Before the insert: a program registers its version at each launch, and the row may be there already.
CREATE OR REPLACE TRIGGER everstep_other_version_noted
BEFORE INSERT OR UPDATE ON {schema}.application_versions
FOR EACH ROW
WHEN (current_setting('everstep.quiet', TRUE) IS DISTINCT FROM 'on')
EXECUTE FUNCTION {schema}.everstep_note_other_version();

CREATE OR REPLACE FUNCTION {schema}.everstep_check_claim() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
DECLARE
  is_taken BOOLEAN := FALSE;
BEGIN
  IF TG_RELID <> '{schema}.workflow_status'::REGCLASS THEN
    RAISE insufficient_privilege USING MESSAGE = 'only triggers of workflow_status may call this function';
  END IF;
  -- Once for all rows of a queue in a transaction.
  IF current_setting('everstep.claims_from', TRUE) IS DISTINCT FROM NEW.queue_name THEN
    -- No engine claims from the queue until this transaction ends.
    is_taken := NOT pg_try_advisory_xact_lock_shared(
      hashtextextended('everstep.' || TG_TABLE_SCHEMA || '.queue.' || NEW.queue_name, 0));
    -- Fails if an engine has claimed since the snapshot in which this transaction has counted.
    PERFORM 1 FROM {schema}.shared_queues AS q WHERE q.name = NEW.queue_name FOR SHARE NOWAIT;
    IF NOT FOUND THEN
      INSERT INTO {schema}.shared_queues (name) VALUES (NEW.queue_name) ON CONFLICT DO NOTHING;
    END IF;
    PERFORM set_config('everstep.claims_from', NEW.queue_name, TRUE);
  END IF;
  -- A transaction without a snapshot of its own may have counted before an engine's claim as well, but can count again.
  IF is_taken OR current_setting('transaction_isolation') = 'read committed' AND EXISTS (
    SELECT 1
    FROM {schema}.queues AS q
    WHERE q.name = NEW.queue_name AND (
      q.concurrency <= (
        SELECT COUNT(*) FROM {schema}.workflow_status AS w WHERE w.queue_name = NEW.queue_name AND w.status = 'PENDING')
      OR q.partition_concurrency <= (
        SELECT COUNT(*)
        FROM {schema}.workflow_status AS w
        WHERE w.queue_name = NEW.queue_name AND w.queue_partition_key = NEW.queue_partition_key AND w.status = 'PENDING'))
  ) THEN
    RAISE lock_not_available USING
      MESSAGE = format('an engine of Everstep claims from queue %L', NEW.queue_name), HINT = 'Try again.';
  END IF;
  RETURN NEW;
EXCEPTION
  WHEN undefined_function OR feature_not_supported THEN
    -- The server lacks advisory locks.
    RETURN NEW;
END;
$body$;

CREATE OR REPLACE TRIGGER everstep_claim_checked
BEFORE UPDATE OF status ON {schema}.workflow_status
FOR EACH ROW
WHEN (
  OLD.status = 'ENQUEUED' AND NEW.status = 'PENDING' AND NEW.queue_name IS NOT NULL
  AND current_setting('everstep.quiet', TRUE) IS DISTINCT FROM 'on'
)
EXECUTE FUNCTION {schema}.everstep_check_claim();

-- Checkpoints.

-- The failed attempts of steps that are retried, so that the next process continues the count and the backoff.
CREATE TABLE IF NOT EXISTS {schema}.step_attempts (
  workflow_uuid TEXT NOT NULL
    REFERENCES {schema}.workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  function_id INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  retry_at_epoch_ms BIGINT NOT NULL,
  errors TEXT NOT NULL,
  PRIMARY KEY (workflow_uuid, function_id)
);

CREATE OR REPLACE FUNCTION {schema}.everstep_check_step() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
BEGIN
  IF TG_RELID <> '{schema}.operation_outputs'::REGCLASS THEN
    RAISE insufficient_privilege USING MESSAGE = 'only triggers of operation_outputs may call this function';
  END IF;
  PERFORM 1 FROM {schema}.workflow_status AS w WHERE w.workflow_uuid = NEW.workflow_uuid FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE foreign_key_violation USING
      MESSAGE = format('workflow "%s" of a step does not exist', NEW.workflow_uuid),
      CONSTRAINT = 'operation_outputs_workflow_uuid_fkey';
  END IF;
  RETURN NULL;
END;
$body$;

CREATE OR REPLACE TRIGGER everstep_step_checked
AFTER INSERT OR UPDATE OF workflow_uuid ON {schema}.operation_outputs
FOR EACH ROW WHEN (
  current_setting('everstep.quiet', TRUE) IS DISTINCT FROM 'on'
  AND current_setting('everstep.checked', TRUE) IS DISTINCT FROM NEW.workflow_uuid
)
EXECUTE FUNCTION {schema}.everstep_check_step();

-- The check of the foreign key took more than a third of the time of writing a checkpoint. Everstep locks the workflow's row
-- in the same statement anyway. The second name is that of DBOS for TypeScript.
ALTER TABLE {schema}.operation_outputs DROP CONSTRAINT IF EXISTS operation_outputs_workflow_uuid_fkey;

ALTER TABLE {schema}.operation_outputs DROP CONSTRAINT IF EXISTS operation_outputs_workflow_uuid_foreign;

-- Checkpoints that DBOS has left behind: without the key, it deletes workflows before their checkpoints. A new workflow with
-- such an ID would replay them.
DELETE FROM {schema}.operation_outputs AS o
WHERE NOT EXISTS (SELECT 1 FROM {schema}.workflow_status AS w WHERE w.workflow_uuid = o.workflow_uuid);

-- History.

-- The journal: what happened to workflows and is not, or no longer, in the other tables. Rows are only ever added, and go
-- with their workflow. Triggers add those about changes of state, whichever program makes them; runs add one row for each
-- of their writes, of which the view `journal_events` makes events. A foreign key would lock the workflow once more for
-- each row; triggers take its place.
CREATE TABLE IF NOT EXISTS {schema}.journal (
  workflow_id TEXT NOT NULL,
  seq BIGINT GENERATED ALWAYS AS IDENTITY,
  at BIGINT NOT NULL DEFAULT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT,
  -- Readers that follow the journal wait until no older transaction can still add a row.
  xid XID8 NOT NULL DEFAULT pg_current_xact_id(),
  event_type TEXT NOT NULL,
  step INTEGER,
  attempt INTEGER,
  executor TEXT,
  actor TEXT,
  details JSONB,
  -- Tells a row that is written again from a new one, and a stored event from the same one in the other tables.
  key TEXT,
  -- The owner token of the run, if the row is about how an attempt began or how a workflow ended.
  owner TEXT,
  -- Of the step.
  name TEXT,
  started_at BIGINT,
  -- Tells the checkpoint of a step from a later one under the same number.
  completed_at BIGINT,
  -- Readers that follow the journal read it in this order.
  PRIMARY KEY (xid, seq)
);

CREATE INDEX IF NOT EXISTS idx_journal_workflow ON {schema}.journal (workflow_id, step);

-- Rows are stored in the order of their times, more or less.
CREATE INDEX IF NOT EXISTS idx_journal_at ON {schema}.journal USING brin (at) WITH (pages_per_range = 32, autosummarize = on);

CREATE UNIQUE INDEX IF NOT EXISTS uq_journal_key ON {schema}.journal (workflow_id, key) WHERE key IS NOT NULL;

-- The epochs of the journal: which cluster wrote its rows, by the numbers that it gave its transactions.
CREATE TABLE IF NOT EXISTS {schema}.journal_epochs (
  epoch INTEGER PRIMARY KEY,
  cluster TEXT NOT NULL,
  -- Rows up to this one are of earlier epochs.
  after_seq BIGINT NOT NULL
);

-- Anyone can change a setting, so it only says that a deletion is meant: who may make it is a matter of rights. No other
-- statement needs this one. A row moves to another ID with its workflow alone.
CREATE OR REPLACE FUNCTION {schema}.everstep_guard_journal() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  is_pruning BOOLEAN := COALESCE(current_setting('everstep.prune', TRUE), '') = 'on';
BEGIN
  IF TG_OP = 'DELETE' THEN
    IF is_pruning AND has_table_privilege('{schema}.journal', 'TRUNCATE')
      OR NOT EXISTS (SELECT 1 FROM {schema}.workflow_status AS w WHERE w.workflow_uuid = OLD.workflow_id) THEN
      RETURN OLD;
    END IF;
    IF is_pruning THEN
      RAISE insufficient_privilege USING MESSAGE = 'a role needs the right to TRUNCATE the journal to delete rows of it';
    END IF;
  ELSIF TG_OP = 'UPDATE' THEN
    IF to_jsonb(OLD) - 'workflow_id' = to_jsonb(NEW) - 'workflow_id'
      AND NOT EXISTS (SELECT 1 FROM {schema}.workflow_status AS w WHERE w.workflow_uuid = OLD.workflow_id)
      AND EXISTS (SELECT 1 FROM {schema}.workflow_status AS w WHERE w.workflow_uuid = NEW.workflow_id) THEN
      RETURN NEW;
    END IF;
  END IF;
  RAISE EXCEPTION 'The history of workflows is append-only.' USING ERRCODE = 'object_not_in_prerequisite_state';
END;
$body$;

CREATE OR REPLACE TRIGGER everstep_journal_kept
BEFORE UPDATE OR DELETE ON {schema}.journal
FOR EACH ROW EXECUTE FUNCTION {schema}.everstep_guard_journal();

CREATE OR REPLACE TRIGGER everstep_journal_not_truncated
BEFORE TRUNCATE ON {schema}.journal
FOR EACH STATEMENT EXECUTE FUNCTION {schema}.everstep_guard_journal();

-- Functions that run with the rights of their owner serve the triggers that call them, and nobody else. Anyone who may create
-- a temporary table could hang them on that, and so change workflows, checkpoints and the history without a right to: who may
-- not call them cannot, and where privileges were lost, as in a dump without them, they refuse any table but their own. They
-- look at nothing of the row before: a type of the caller's could bring a cast, which would run with the same rights.

CREATE OR REPLACE FUNCTION {schema}.everstep_journal_change() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  -- What the caller says about the change: its source, a reason and an actor.
  note JSONB := NULLIF(current_setting('everstep.change', TRUE), '')::JSONB;
  now_ms BIGINT := FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT;
  changed_at BIGINT;
  source TEXT := note ->> 'source';
  kind TEXT;
  facts JSONB;
BEGIN
  IF TG_RELID <> '{schema}.workflow_status'::REGCLASS THEN
    RAISE insufficient_privilege USING MESSAGE = 'only triggers of workflow_status may call this function';
  END IF;
  changed_at := CASE WHEN NEW.updated_at <> OLD.updated_at THEN NEW.updated_at ELSE now_ms END;
  IF NEW.status = 'CANCELLED' AND OLD.status IS DISTINCT FROM 'CANCELLED' THEN
    source := COALESCE(source, CASE WHEN NEW.workflow_deadline_epoch_ms <= changed_at THEN 'deadline' ELSE 'api' END);
    kind := CASE WHEN source = 'deadline' THEN 'WorkflowTimedOut' ELSE 'WorkflowCancelRequested' END;
    facts := jsonb_build_object('from_status', OLD.status, 'queue', OLD.queue_name, 'started_at', OLD.started_at_epoch_ms);
    IF source = 'deadline' THEN
      facts := facts || jsonb_build_object(
        'deadline', NEW.workflow_deadline_epoch_ms, 'timeout_seconds', NEW.workflow_timeout_ms / 1000.0);
    END IF;
  ELSIF NEW.status = 'MAX_RECOVERY_ATTEMPTS_EXCEEDED' AND OLD.status IS DISTINCT FROM NEW.status THEN
    kind := 'WorkflowDeadLettered';
    facts := jsonb_build_object('attempts', OLD.recovery_attempts, 'queue', OLD.queue_name);
  ELSIF source = 'resume' OR source = 'rewind' OR OLD.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING') THEN
    source := COALESCE(source, CASE WHEN OLD.status IN ('SUCCESS', 'ERROR') THEN 'rewind' ELSE 'resume' END);
    kind := CASE WHEN source = 'rewind' THEN 'WorkflowRewound' ELSE 'WorkflowResumed' END;
    facts := jsonb_build_object('from_status', OLD.status, 'queue', NEW.queue_name, 'attempts', OLD.recovery_attempts,
      'completed_at', OLD.completed_at, 'error', OLD.error, 'start_step', note -> 'startStep');
  ELSIF OLD.status = 'PENDING' AND NEW.status = 'DELAYED' THEN
    kind := 'WorkflowTaskYielded';
    facts := jsonb_build_object('until', NEW.delay_until_epoch_ms, 'started_at', OLD.started_at_epoch_ms);
  ELSIF OLD.status = 'PENDING' AND NEW.status = 'ENQUEUED' THEN
    kind := 'AttemptLost';
    source := COALESCE(source, 'recovery');
    facts := jsonb_build_object('started_at', OLD.started_at_epoch_ms, 'version', OLD.application_version);
  ELSIF OLD.delay_until_epoch_ms IS DISTINCT FROM NEW.delay_until_epoch_ms THEN
    kind := 'DelayChanged';
    facts := jsonb_build_object('from', OLD.delay_until_epoch_ms, 'to', NEW.delay_until_epoch_ms);
  ELSE
    kind := 'PriorityChanged';
    facts := jsonb_build_object('from', OLD.priority, 'to', NEW.priority);
  END IF;
  INSERT INTO {schema}.journal (workflow_id, at, event_type, attempt, executor, actor, details)
  VALUES (
    NEW.workflow_uuid, changed_at, kind,
    CASE WHEN OLD.status = 'PENDING' THEN LEAST(GREATEST(OLD.recovery_attempts, 0), 2147483647)::INTEGER END,
    CASE WHEN OLD.status = 'PENDING' THEN OLD.executor_id END,
    note ->> 'actor',
    jsonb_strip_nulls(facts || jsonb_build_object('source', source, 'reason', note ->> 'reason')));
  RETURN NULL;
END;
$body$;

-- The condition is evaluated before anything is called or queued. A workflow that just runs does not meet it.
CREATE OR REPLACE TRIGGER everstep_workflow_journaled
AFTER UPDATE ON {schema}.workflow_status
FOR EACH ROW
WHEN (
  (OLD.status IS DISTINCT FROM NEW.status AND (
    NEW.status IN ('CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED')
    OR (OLD.status = 'PENDING' AND NEW.status IN ('ENQUEUED', 'DELAYED')
      AND (OLD.started_at_epoch_ms IS NOT NULL OR OLD.queue_name IS NULL OR NEW.status = 'DELAYED'))
    OR (OLD.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING') AND NEW.status IN ('ENQUEUED', 'DELAYED', 'PENDING'))))
  OR (OLD.status IN ('ENQUEUED', 'DELAYED') AND NEW.status IN ('ENQUEUED', 'DELAYED')
    AND OLD.delay_until_epoch_ms IS DISTINCT FROM NEW.delay_until_epoch_ms)
  OR (OLD.priority <> NEW.priority AND NEW.status IN ('ENQUEUED', 'DELAYED', 'PENDING'))
)
EXECUTE FUNCTION {schema}.everstep_journal_change();

CREATE OR REPLACE FUNCTION {schema}.everstep_journal_fork() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  note JSONB := NULLIF(current_setting('everstep.change', TRUE), '')::JSONB;
BEGIN
  IF TG_RELID <> '{schema}.workflow_status'::REGCLASS THEN
    RAISE insufficient_privilege USING MESSAGE = 'only triggers of workflow_status may call this function';
  END IF;
  IF note ->> 'source' = 'import' THEN
    RETURN NULL;
  END IF;
  INSERT INTO {schema}.journal (workflow_id, at, event_type, actor, details)
  SELECT w.workflow_uuid, NEW.created_at, 'WorkflowForked', note ->> 'actor', jsonb_strip_nulls(jsonb_build_object(
    'new_id', NEW.workflow_uuid, 'version', NEW.application_version, 'reason', note ->> 'reason'))
  FROM {schema}.workflow_status AS w
  WHERE w.workflow_uuid = NEW.forked_from
  FOR KEY SHARE OF w;
  RETURN NULL;
END;
$body$;

CREATE OR REPLACE TRIGGER everstep_fork_journaled
AFTER INSERT ON {schema}.workflow_status
FOR EACH ROW
WHEN (NEW.forked_from IS NOT NULL)
EXECUTE FUNCTION {schema}.everstep_journal_fork();

CREATE OR REPLACE FUNCTION {schema}.everstep_journal_follow() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
BEGIN
  IF TG_RELID <> '{schema}.workflow_status'::REGCLASS THEN
    RAISE insufficient_privilege USING MESSAGE = 'only triggers of workflow_status may call this function';
  END IF;
  IF TG_OP = 'DELETE' THEN
    DELETE FROM {schema}.operation_outputs AS o WHERE o.workflow_uuid = OLD.workflow_uuid;
    DELETE FROM {schema}.journal AS j WHERE j.workflow_id = OLD.workflow_uuid AND j.event_type <> 'WorkflowDeleted';
  ELSIF TG_OP = 'UPDATE' THEN
    UPDATE {schema}.operation_outputs AS o SET workflow_uuid = NEW.workflow_uuid WHERE o.workflow_uuid = OLD.workflow_uuid;
    UPDATE {schema}.journal AS j SET workflow_id = NEW.workflow_uuid WHERE j.workflow_id = OLD.workflow_uuid;
  ELSIF TG_OP = 'TRUNCATE' THEN
    DELETE FROM {schema}.operation_outputs;
    DELETE FROM {schema}.journal;
  END IF;
  RETURN NULL;
END;
$body$;

CREATE OR REPLACE TRIGGER everstep_journal_deleted
AFTER DELETE ON {schema}.workflow_status
FOR EACH ROW EXECUTE FUNCTION {schema}.everstep_journal_follow();

CREATE OR REPLACE TRIGGER everstep_journal_renamed
AFTER UPDATE OF workflow_uuid ON {schema}.workflow_status
FOR EACH ROW WHEN (OLD.workflow_uuid <> NEW.workflow_uuid)
EXECUTE FUNCTION {schema}.everstep_journal_follow();

CREATE OR REPLACE TRIGGER everstep_journal_truncated
AFTER TRUNCATE ON {schema}.workflow_status
FOR EACH STATEMENT EXECUTE FUNCTION {schema}.everstep_journal_follow();

-- A difference of times that is out of range failed all who followed the journal.
-- What each row says: that a workflow was started (0), that an attempt began (1), that a step did (2), and how it ended, or
-- another event (3).
CREATE OR REPLACE VIEW {schema}.journal_events AS
SELECT j.workflow_id, j.xid, j.seq, p.part, j.at,
  CASE p.part WHEN 1 THEN 'AttemptStarted' WHEN 2 THEN 'ActivityScheduled' ELSE j.event_type END AS event_type,
  CASE WHEN p.part <> 1 THEN j.step END AS step,
  CASE WHEN p.part = 1 OR j.owner IS NULL THEN j.attempt END AS attempt,
  j.executor, j.actor,
  CASE
    WHEN p.part = 1 THEN jsonb_strip_nulls(jsonb_build_object('version', j.details -> 'version', 'queue', j.details -> 'queue'))
    WHEN p.part = 2 THEN jsonb_build_object('activity_name', j.name, 'input', j.details -> 'input')
    WHEN p.part = 3 AND j.event_type IN ('ActivityCompleted', 'ActivityFailed') AND j.completed_at IS NOT NULL
      THEN jsonb_build_object('activity_name', j.name, 'duration_ms', j.completed_at::NUMERIC - j.started_at)
    WHEN p.part = 3 AND j.event_type IN ('WorkflowCompleted', 'WorkflowFailed') AND j.completed_at IS NOT NULL
      THEN jsonb_build_object('duration_ms', j.completed_at::NUMERIC - j.started_at)
    ELSE j.details
  END AS details,
  j.completed_at, j.owner,
  COALESCE(j.key, CASE
    WHEN p.part = 0 THEN 'started'
    WHEN p.part = 1 THEN 'attempt:' || j.owner
    WHEN j.step IS NOT NULL
      THEN 'step:' || j.step || CASE WHEN p.part = 2 OR j.event_type = 'TimerScheduled' THEN ':begun:' ELSE ':done:' END || j.completed_at
    ELSE 'outcome:' || j.owner
  END) AS key
FROM {schema}.journal AS j
JOIN (VALUES (0), (1), (2), (3)) AS p(part) ON CASE p.part
  WHEN 0 THEN j.event_type = 'WorkflowStarted'
  WHEN 1 THEN j.attempt IS NOT NULL AND j.owner IS NOT NULL
  WHEN 2 THEN j.event_type IN ('ActivityCompleted', 'ActivityFailed') AND j.completed_at IS NOT NULL
  ELSE j.event_type NOT IN ('WorkflowStarted', 'PayloadKept') END;

-- A stored value as plain JSON. A text that is none, such as that of a custom serializer, becomes a string.
CREATE OR REPLACE FUNCTION {schema}.everstep_json(value TEXT) RETURNS JSONB
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  parsed JSONB;
BEGIN
  parsed := value::JSONB;
  IF jsonb_typeof(parsed) = 'object' AND parsed ? '__dbos_serializer' THEN
    RETURN parsed -> 'json';
  END IF;
  RETURN parsed;
EXCEPTION
  WHEN OTHERS THEN
    RETURN to_jsonb(value);
END;
$body$;

-- Where no event is derived that is stored, a value is selected instead of NOT EXISTS: the planner would hash the whole
-- journal for that.
CREATE OR REPLACE VIEW {schema}.history AS
SELECT e.workflow_id,
  CASE
    WHEN e.part = 0 THEN 0
    -- Before a workflow that was started under the same ID later, and after what happened to one that was restored.
    WHEN e.event_type = 'WorkflowDeleted' THEN COALESCE((
      SELECT CASE WHEN n.created_at < e.at THEN 2 ELSE 0 END
      FROM {schema}.workflow_status AS n WHERE n.workflow_uuid = e.workflow_id), 0)
    ELSE 1
  END AS phase, e.at, e.step,
  CASE WHEN e.part = 2 OR (e.step IS NOT NULL AND e.event_type IN ('ActivityScheduled', 'TimerScheduled')) THEN 0 ELSE 1 END AS part,
  e.seq, e.event_type, e.attempt, e.executor, e.actor,
  CASE WHEN k.key IS NULL THEN e.details ELSE COALESCE(e.details, '{}'::JSONB) || k.details END AS details,
  CASE
    WHEN e.part = 0 THEN 'input'
    WHEN w.status = 'SUCCESS' OR (o.function_id IS NOT NULL AND o.error IS NULL) THEN 'result'
    WHEN w.status = 'ERROR' OR o.error IS NOT NULL THEN 'error'
  END AS payload_name,
  CASE
    WHEN e.part = 0 THEN w.inputs
    WHEN w.workflow_uuid IS NOT NULL THEN COALESCE(w.output, w.error)
    ELSE COALESCE(o.output, o.error)
  END AS payload,
  COALESCE(w.serialization, o.serialization) AS serialization, e.key
FROM {schema}.journal_events AS e
LEFT JOIN {schema}.operation_outputs AS o
  ON o.workflow_uuid = e.workflow_id AND o.function_id = e.step AND o.completed_at_epoch_ms = e.completed_at AND e.part = 3
  AND e.event_type NOT IN ('TimerScheduled', 'TimerFired')
LEFT JOIN {schema}.workflow_status AS w
  ON w.workflow_uuid = e.workflow_id AND (e.part = 0 OR (
    e.event_type IN ('WorkflowCompleted', 'WorkflowFailed') AND e.owner = w.owner_xid AND w.status IN ('SUCCESS', 'ERROR')))
-- What a rewind has deleted.
LEFT JOIN {schema}.journal AS k
  ON k.workflow_id = e.workflow_id AND k.key = CASE WHEN e.part = 3 AND e.completed_at IS NOT NULL THEN 'payload:' || e.seq END
UNION ALL
SELECT d.workflow_id, d.phase, d.at, d.step, d.part, NULL::BIGINT AS seq, d.event_type, d.attempt, d.executor, NULL AS actor,
  d.details, d.payload_name, d.payload, d.serialization, d.key
FROM (
  SELECT w.workflow_uuid AS workflow_id, 0 AS phase, w.created_at AS at, NULL::INTEGER AS step, 0 AS part,
    'WorkflowStarted' AS event_type, NULL::INTEGER AS attempt, NULL AS executor,
    jsonb_strip_nulls(jsonb_build_object(
      'workflow_name', w.name, 'class_name', NULLIF(w.class_name, ''), 'config_name', NULLIF(w.config_name, ''),
      'queue', w.queue_name, 'priority', w.priority, 'partition_key', w.queue_partition_key,
      'timeout_ms', w.workflow_timeout_ms, 'parent_id', w.parent_workflow_id, 'forked_from', w.forked_from,
      'schedule', w.schedule_name, 'version', w.application_version)) AS details,
    'input' AS payload_name, COALESCE(w.inputs, i.inputs) AS payload, w.serialization, 'started' AS key
  FROM {schema}.workflow_status AS w
  LEFT JOIN {schema}.workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
  WHERE (SELECT 1 FROM {schema}.journal AS s WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL AND s.event_type = 'WorkflowStarted' LIMIT 1) IS NULL
  UNION ALL
  SELECT w.workflow_uuid, 1, w.started_at_epoch_ms, NULL, 0, 'AttemptStarted', w.recovery_attempts::INTEGER, w.executor_id,
    jsonb_strip_nulls(jsonb_build_object('version', w.application_version, 'queue', w.queue_name)), NULL, NULL, NULL,
    'attempt:' || w.owner_xid
  FROM {schema}.workflow_status AS w
  WHERE w.started_at_epoch_ms IS NOT NULL AND w.status NOT IN ('ENQUEUED', 'DELAYED')
    AND (
      SELECT 1 FROM {schema}.journal AS s
      WHERE s.workflow_id = w.workflow_uuid AND s.attempt IS NOT NULL
        AND (s.owner = w.owner_xid OR s.key = 'attempt:' || w.owner_xid)
      LIMIT 1) IS NULL
  UNION ALL
  SELECT o.workflow_uuid, 1,
    CASE
      WHEN p.part = 0 THEN COALESCE(o.started_at_epoch_ms, o.completed_at_epoch_ms, o.retention_timestamp)
      WHEN o.function_name = 'DBOS.sleep' THEN COALESCE(f.fire_at, o.completed_at_epoch_ms, o.retention_timestamp)
      ELSE COALESCE(o.completed_at_epoch_ms, o.retention_timestamp)
    END,
    o.function_id, p.part,
    CASE
      WHEN o.function_name = 'DBOS.sleep' THEN CASE WHEN p.part = 0 THEN 'TimerScheduled' ELSE 'TimerFired' END
      WHEN p.part = 0 THEN 'ActivityScheduled'
      WHEN o.function_name = 'DBOS.getResult' THEN 'ChildWorkflowCompleted'
      WHEN o.child_workflow_id IS NOT NULL AND o.function_name NOT LIKE 'DBOS.%' THEN 'ChildWorkflowStarted'
      WHEN o.function_name = 'DBOS.recv' THEN CASE
        WHEN o.output IS NULL OR o.output = 'null' OR o.output LIKE '{"json":null%' THEN 'ReceiveTimedOut' ELSE 'MessageConsumed' END
      WHEN o.function_name = 'DBOS.setEvent' THEN 'EventSet'
      WHEN o.function_name = 'DBOS.closeStream' THEN 'StreamClosed'
      WHEN o.function_name LIKE 'DBOS.patch-%' THEN 'WorkflowPatched'
      WHEN o.function_name LIKE 'DBOS.%' THEN 'OperationCompleted'
      WHEN o.error IS NOT NULL THEN 'ActivityFailed'
      ELSE 'ActivityCompleted'
    END,
    NULL, NULL,
    CASE
      WHEN o.function_name = 'DBOS.sleep' THEN jsonb_build_object(
        'timer_id', o.workflow_uuid || ':' || o.function_id,
        CASE WHEN p.part = 0 THEN 'fire_at' ELSE 'fired_at' END, to_timestamp(f.fire_at / 1000.0))
      WHEN p.part = 0 THEN jsonb_build_object('activity_name', o.function_name, 'input', NULL)
      WHEN o.child_workflow_id IS NOT NULL THEN jsonb_build_object('child_id', o.child_workflow_id, 'name', o.function_name)
      WHEN o.function_name = 'DBOS.setEvent' THEN jsonb_build_object('key', (
        SELECT h.key FROM {schema}.workflow_events_history AS h
        WHERE h.workflow_uuid = o.workflow_uuid AND h.function_id = o.function_id LIMIT 1))
      WHEN o.function_name LIKE 'DBOS.patch-%' THEN jsonb_build_object('patch', SUBSTR(o.function_name, 12))
      WHEN o.function_name LIKE 'DBOS.%' THEN jsonb_build_object('operation', o.function_name)
      ELSE jsonb_build_object('activity_name', o.function_name,
        'duration_ms', o.completed_at_epoch_ms - o.started_at_epoch_ms)
    END,
    CASE WHEN p.part = 1 AND o.function_name <> 'DBOS.sleep' THEN CASE WHEN o.error IS NULL THEN 'result' ELSE 'error' END END,
    CASE WHEN p.part = 1 AND o.function_name <> 'DBOS.sleep' THEN COALESCE(o.output, o.error) END,
    o.serialization,
    'step:' || o.function_id || CASE WHEN p.part = 0 THEN ':begun:' ELSE ':done:' END || COALESCE(o.completed_at_epoch_ms, 0)
  FROM {schema}.operation_outputs AS o
  -- A sleep records when it ends: a number, or superjson that contains it.
  CROSS JOIN LATERAL (SELECT CASE WHEN o.function_name = 'DBOS.sleep'
    THEN SUBSTRING(o.output FROM '[0-9]{10,15}')::BIGINT END AS fire_at) AS f
  JOIN (VALUES (0), (1)) AS p(part)
    ON (p.part = 1 OR o.function_name = 'DBOS.sleep'
      OR (o.function_name NOT LIKE 'DBOS.%' AND o.child_workflow_id IS NULL))
    -- The timer of a wait is recorded before it ends, and says nothing of how the wait ended.
    AND (p.part = 0 OR o.function_name <> 'DBOS.sleep' OR (o.completed_at_epoch_ms >= f.fire_at
      AND f.fire_at <= FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT))
  -- Only the events of a sleep are stored one by one. Those of a step are looked for once, before they are told apart.
  WHERE CASE WHEN o.function_name = 'DBOS.sleep' THEN TRUE ELSE (
      SELECT 1 FROM {schema}.journal AS s
      WHERE s.workflow_id = o.workflow_uuid AND s.step = o.function_id AND s.completed_at = COALESCE(o.completed_at_epoch_ms, 0)
      LIMIT 1) IS NULL END
    AND CASE WHEN o.function_name = 'DBOS.sleep' THEN (
      SELECT 1 FROM {schema}.journal AS s
      WHERE s.workflow_id = o.workflow_uuid AND s.step = o.function_id AND s.completed_at = COALESCE(o.completed_at_epoch_ms, 0)
        AND (s.event_type = 'TimerFired') = (p.part = 1)
      LIMIT 1) IS NULL ELSE TRUE END
  UNION ALL
  SELECT n.destination_uuid, 1, n.created_at_epoch_ms, NULL, 0, 'SignalReceived', NULL, NULL,
    jsonb_build_object('signal_name', NULLIF(n.topic, '__null__topic__'), 'message_id', n.message_uuid),
    'input', n.message, n.serialization, 'message:' || n.message_uuid
  FROM {schema}.notifications AS n
  WHERE (
    SELECT 1 FROM {schema}.journal AS s WHERE s.workflow_id = n.destination_uuid AND s.key = 'message:' || n.message_uuid LIMIT 1) IS NULL
  UNION ALL
  SELECT w.workflow_uuid, 2, COALESCE(w.completed_at, w.updated_at), NULL, 0,
    CASE w.status WHEN 'SUCCESS' THEN 'WorkflowCompleted' WHEN 'ERROR' THEN 'WorkflowFailed' ELSE 'WorkflowCanceled' END,
    NULL, NULL, jsonb_build_object('duration_ms', COALESCE(w.completed_at, w.updated_at) - w.created_at),
    CASE w.status WHEN 'SUCCESS' THEN 'result' WHEN 'ERROR' THEN 'error' END,
    COALESCE(w.output, r.output, w.error, r.error), w.serialization, 'outcome:' || w.owner_xid
  FROM {schema}.workflow_status AS w
  LEFT JOIN {schema}.workflow_output AS r ON r.workflow_uuid = w.workflow_uuid
  WHERE (w.status IN ('SUCCESS', 'ERROR') OR (w.status = 'CANCELLED' AND COALESCE((
    SELECT j.event_type FROM {schema}.journal AS j
    WHERE j.workflow_id = w.workflow_uuid AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
    ORDER BY j.seq DESC LIMIT 1), '') <> 'WorkflowTimedOut'))
    AND (
      SELECT 1 FROM {schema}.journal AS s
      WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL
        AND ((s.owner = w.owner_xid AND s.event_type IN ('WorkflowCompleted', 'WorkflowFailed')) OR s.key = 'outcome:' || w.owner_xid)
      LIMIT 1) IS NULL
) AS d;

-- Timers that programs add to the view of timers.
CREATE TABLE IF NOT EXISTS {schema}.journal_timers (
  timer_id TEXT PRIMARY KEY,
  workflow_id TEXT NOT NULL
    REFERENCES {schema}.workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  fire_at BIGINT NOT NULL,
  fired BOOLEAN NOT NULL DEFAULT FALSE,
  created_at BIGINT NOT NULL DEFAULT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT
);

CREATE INDEX IF NOT EXISTS idx_journal_timers_pending ON {schema}.journal_timers (fire_at) WHERE NOT fired;

CREATE INDEX IF NOT EXISTS idx_journal_timers_workflow ON {schema}.journal_timers (workflow_id);

CREATE OR REPLACE FUNCTION {schema}.everstep_delete_execution() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
  DELETE FROM {schema}.workflow_status AS w WHERE w.workflow_uuid = OLD.workflow_id;
  DELETE FROM {schema}.operation_outputs AS o WHERE o.workflow_uuid = OLD.workflow_id;
  DELETE FROM {schema}.workflow_input AS i WHERE i.workflow_uuid = OLD.workflow_id;
  DELETE FROM {schema}.workflow_output AS r WHERE r.workflow_uuid = OLD.workflow_id;
  RETURN OLD;
END;
$body$;

-- The same in the form of sched's tables, in a schema of their own. False if the role may not create schemas; then call it
-- with a role that may.
CREATE OR REPLACE FUNCTION {schema}.everstep_create_history() RETURNS BOOLEAN
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
  CREATE SCHEMA IF NOT EXISTS {history};

  CREATE OR REPLACE VIEW {history}.workflow_executions AS
  SELECT w.workflow_uuid AS workflow_id, COALESCE(w.creator_xid, w.workflow_uuid) AS run_id, w.name,
    CASE
      WHEN w.status IN ('ENQUEUED', 'DELAYED', 'PENDING') THEN 'RUNNING'
      WHEN w.status = 'SUCCESS' THEN 'COMPLETED'
      WHEN w.status <> 'CANCELLED' THEN 'FAILED'
      WHEN (
        SELECT j.event_type FROM {schema}.journal AS j
        WHERE j.workflow_id = w.workflow_uuid AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
        ORDER BY j.seq DESC LIMIT 1) = 'WorkflowTimedOut' THEN 'TIMED_OUT'
      ELSE 'CANCELED'
    END AS status,
    {schema}.everstep_json(COALESCE(w.inputs, i.inputs)) AS input,
    {schema}.everstep_json(COALESCE(w.output, r.output)) AS result,
    COALESCE(w.error, r.error) AS error,
    to_timestamp(w.created_at / 1000.0) AS start_time,
    to_timestamp(w.completed_at / 1000.0) AS end_time,
    -- Each transition moves to a later stage, or adds to the journal more than a step back takes away.
    (1 + CASE w.status WHEN 'DELAYED' THEN 0 WHEN 'ENQUEUED' THEN 1 WHEN 'PENDING' THEN 2 ELSE 3 END + COALESCE((
      SELECT SUM(CASE WHEN j.event_type IN ('AttemptLost', 'WorkflowResumed', 'WorkflowRewound', 'WorkflowTaskYielded', 'DelayChanged')
        THEN 4 ELSE 1 END)
      FROM {schema}.journal AS j WHERE j.workflow_id = w.workflow_uuid), 0))::INTEGER AS version
  FROM {schema}.workflow_status AS w
  LEFT JOIN {schema}.workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
  LEFT JOIN {schema}.workflow_output AS r ON r.workflow_uuid = w.workflow_uuid;

  CREATE OR REPLACE TRIGGER everstep_execution_deleted
  INSTEAD OF DELETE ON {history}.workflow_executions
  FOR EACH ROW EXECUTE FUNCTION {schema}.everstep_delete_execution();

  CREATE OR REPLACE VIEW {history}.workflow_events AS
  SELECT h.workflow_id,
    ROW_NUMBER() OVER (
      PARTITION BY h.workflow_id ORDER BY h.phase, h.at,
      CASE WHEN h.event_type = 'AttemptStarted' THEN -1 ELSE COALESCE(h.step, 2147483647) END, h.part, h.seq) AS idx,
    h.event_type, to_timestamp(h.at / 1000.0) AS timestamp,
    COALESCE(h.details, '{}'::JSONB) || CASE
      WHEN h.payload_name IS NULL THEN '{}'::JSONB
      ELSE jsonb_build_object(h.payload_name, {schema}.everstep_json(h.payload)) END AS details
  FROM {schema}.history AS h;

  CREATE OR REPLACE VIEW {history}.tasks AS
  SELECT COALESCE(w.owner_xid, w.creator_xid, '') || '/' || w.workflow_uuid AS task_token, w.workflow_uuid AS workflow_id,
    'WORKFLOW' AS kind, NULL::TEXT AS activity_name, {schema}.everstep_json(COALESCE(w.inputs, i.inputs)) AS input,
    CASE WHEN w.status = 'PENDING' THEN 'IN_FLIGHT' ELSE 'PENDING' END AS status,
    CASE WHEN w.status = 'PENDING' THEN w.owner_xid END AS claim_token,
    to_timestamp(e.lease_until_epoch_ms / 1000.0) AS visibility_timeout, to_timestamp(w.created_at / 1000.0) AS created_at
  FROM {schema}.workflow_status AS w
  LEFT JOIN {schema}.workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
  LEFT JOIN {schema}.executors AS e ON w.status = 'PENDING' AND e.incarnation_id = SPLIT_PART(w.owner_xid, '.', 1)
  WHERE w.status IN ('ENQUEUED', 'DELAYED', 'PENDING');

  CREATE OR REPLACE VIEW {history}.timers AS
  SELECT t.timer_id, t.workflow_id, to_timestamp(t.fire_at / 1000.0) AS fire_at,
    t.fired OR (t.kind NOT IN ('own', 'schedule') AND t.fire_at <= FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT) AS fired,
    to_timestamp(t.created_at / 1000.0) AS created_at, t.kind
  FROM (
    SELECT m.timer_id, m.workflow_id, m.fire_at, m.fired, m.created_at, 'own' AS kind
    FROM {schema}.journal_timers AS m
    UNION ALL
    SELECT o.workflow_uuid || ':' || o.function_id, o.workflow_uuid, SUBSTRING(o.output FROM '[0-9]{10,15}')::BIGINT, FALSE,
      COALESCE(o.started_at_epoch_ms, o.retention_timestamp), 'sleep'
    FROM {schema}.workflow_status AS w
    JOIN {schema}.operation_outputs AS o ON o.workflow_uuid = w.workflow_uuid AND o.function_name = 'DBOS.sleep'
    WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED')
    UNION ALL
    SELECT w.workflow_uuid || ':delay', w.workflow_uuid, w.delay_until_epoch_ms, FALSE, w.created_at, 'delay'
    FROM {schema}.workflow_status AS w
    WHERE w.status = 'DELAYED' AND w.delay_until_epoch_ms IS NOT NULL
    UNION ALL
    SELECT w.workflow_uuid || ':deadline', w.workflow_uuid, w.workflow_deadline_epoch_ms, FALSE,
      COALESCE(w.started_at_epoch_ms, w.created_at), 'deadline'
    FROM {schema}.workflow_status AS w
    WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND w.workflow_deadline_epoch_ms IS NOT NULL
    UNION ALL
    -- The backoff of a step that will be repeated.
    SELECT a.workflow_uuid || ':' || a.function_id || ':retry', a.workflow_uuid, a.retry_at_epoch_ms, FALSE,
      COALESCE(w.started_at_epoch_ms, w.created_at), 'retry'
    FROM {schema}.step_attempts AS a
    JOIN {schema}.workflow_status AS w ON w.workflow_uuid = a.workflow_uuid
    LEFT JOIN {schema}.operation_outputs AS o ON o.workflow_uuid = a.workflow_uuid AND o.function_id = a.function_id
    WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND o.workflow_uuid IS NULL
    UNION ALL
    -- Of the workflow that it will start.
    SELECT 'schedule:' || s.schedule_name, 'sched-' || s.schedule_name || '-'
      || to_char(to_timestamp(n.due_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
      n.fire_at, FALSE, n.created_at, 'schedule'
    FROM {schema}.schedule_timers AS n
    JOIN {schema}.workflow_schedules AS s ON s.schedule_id = n.schedule_id
    WHERE s.status = 'ACTIVE'
  ) AS t;
  RETURN TRUE;
EXCEPTION
  WHEN insufficient_privilege THEN
    RETURN FALSE;
END;
$body$;

SELECT {schema}.everstep_create_history();

-- Where the workflows are that retention has archived and deleted: the object of the archive that holds each.
CREATE TABLE IF NOT EXISTS {schema}.archived_workflows (
  workflow_uuid TEXT PRIMARY KEY,
  object_name TEXT NOT NULL,
  archived_at BIGINT NOT NULL
);

-- Rights.

-- Functions that run with the rights of their owner serve the triggers that call them, and nobody else. Anyone who may create
-- a temporary table could hang them on that, and so change workflows, checkpoints and the history without a right to: who may
-- not call them cannot, and where privileges were lost, as in a dump without them, they refuse any table but their own. They
-- look at nothing of the row before: a type of the caller's could bring a cast, which would run with the same rights.
REVOKE ALL ON FUNCTION {schema}.everstep_check_claim() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_check_step() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_delete_execution() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_end_waits() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_guard_journal() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_journal_change() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_journal_follow() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_journal_fork() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_note_other_version() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_wake_at_commit() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_wake_event_readers() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_wake_receivers() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_wake_result_waiters() FROM PUBLIC;
-- if listen_notify
REVOKE ALL ON FUNCTION {schema}.everstep_notify_of_queues() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_notify_of_schedule() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_notify_of_workflow() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.notifications_function() FROM PUBLIC;
-- end if
