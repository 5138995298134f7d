-- Everstep's tables beside those that it shares with DBOS, and its triggers and views on both.

-- Engines.

-- The engines that are or were running: one row for each launch. An engine prolongs its lease by the database's
-- clock; when the lease has ended, any other engine takes over its workflows.
CREATE TABLE IF NOT EXISTS executors (
  incarnation_id TEXT NOT NULL PRIMARY KEY,
  executor_id TEXT NOT NULL,
  application_name TEXT,
  application_version TEXT,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started_at BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  heartbeat_at BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  lease_until_epoch_ms BIGINT NOT NULL,
  metadata TEXT
);

CREATE INDEX IF NOT EXISTS idx_executors_executor_id ON executors (executor_id);

-- Tells this system database from others whose engines use the same application database. It has one row.
CREATE TABLE IF NOT EXISTS system_identity (
  key TEXT NOT NULL PRIMARY KEY,
  id TEXT NOT NULL
);

INSERT INTO system_identity (key, id)
VALUES ('system', lower(hex(randomblob(16))))
ON CONFLICT DO NOTHING;

-- A file that another library has brought to 100 or beyond has no event_dispatch_kv.
CREATE TABLE IF NOT EXISTS event_dispatch_kv (
  service_name TEXT NOT NULL,
  workflow_fn_name TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT,
  update_seq NUMERIC(38, 0),
  update_time NUMERIC(38, 15),
  PRIMARY KEY (service_name, workflow_fn_name, key)
);

-- Workflows and queues.

-- Queues that nobody takes workflows from for now.
CREATE TABLE IF NOT EXISTS paused_queues (
  name TEXT NOT NULL PRIMARY KEY,
  paused_at BIGINT NOT NULL
);

-- The ends of parked waits, and queues whose parked workflows give up their slots.

-- Queues whose workflows leave their slots while they are parked.
CREATE TABLE IF NOT EXISTS slot_releasing_queues (
  name TEXT NOT NULL PRIMARY KEY
);

-- Users see parked workflows as running ones, in lists too. A million of them must not hide a few that are delayed.
CREATE INDEX IF NOT EXISTS idx_workflow_status_listing_state
  ON workflow_status (CASE WHEN status = 'DELAYED' AND owner_xid LIKE '%.%' THEN 'PARKED' ELSE status END, created_at)
  WHERE CASE WHEN status IN ('ENQUEUED', 'DELAYED') THEN TRUE ELSE FALSE END;

-- Claims read the workflows that wait in a queue, or in one of its partitions, in their order: those of a version, and those
-- of none. The conditions are written so that no other statement sees its own in them.
CREATE INDEX IF NOT EXISTS idx_workflow_status_claims
  ON workflow_status
    (queue_name, COALESCE(application_version, ''), priority, created_at, creator_xid, workflow_uuid)
  WHERE CASE WHEN status = 'ENQUEUED' THEN TRUE ELSE FALSE END;

CREATE INDEX IF NOT EXISTS idx_workflow_status_partition_claims
  ON workflow_status
    (queue_name, queue_partition_key, COALESCE(application_version, ''), priority, created_at, creator_xid, workflow_uuid)
  WHERE CASE WHEN status = 'ENQUEUED' AND queue_partition_key IS NOT NULL THEN TRUE ELSE FALSE END;

-- One index of running workflows instead of two. They are few, so those who look for all of them sort what they find: an index
-- in the order of creation cost each claim and each start a write.
CREATE INDEX IF NOT EXISTS idx_workflow_status_running
  ON workflow_status (owner_xid)
  WHERE status = 'PENDING';

DROP INDEX IF EXISTS idx_workflow_status_pending;

-- Each claim looks for the latest version.
CREATE INDEX IF NOT EXISTS idx_application_versions_latest
  ON application_versions (version_timestamp, version_id);

-- Schedules.

-- What only Everstep knows of a schedule, and a counter by which processes see that schedules have changed.
CREATE TABLE IF NOT EXISTS schedule_settings (
  schedule_id TEXT NOT NULL PRIMARY KEY,
  overlap TEXT NOT NULL,
  jitter_ms BIGINT NOT NULL
);

-- When each schedule fires next, which only code can tell. Engines write it for the view of timers.
CREATE TABLE IF NOT EXISTS schedule_timers (
  schedule_id TEXT NOT NULL PRIMARY KEY
    REFERENCES workflow_schedules (schedule_id) ON UPDATE CASCADE ON DELETE CASCADE,
  -- The time of the occurrence, which is part of its workflow's ID, and that time with the jitter.
  due_at BIGINT NOT NULL,
  fire_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS change_counters (
  topic TEXT NOT NULL PRIMARY KEY,
  changes BIGINT NOT NULL
);

-- Engines notice the commits of other processes by themselves. Schedules are reread only if this counter has changed, which
-- programs other than Everstep do not know.
CREATE TRIGGER IF NOT EXISTS everstep_schedule_inserted AFTER INSERT ON workflow_schedules
BEGIN
  INSERT INTO change_counters (topic, changes) VALUES ('schedules', 1)
  ON CONFLICT (topic) DO UPDATE SET changes = changes + 1;
END;

CREATE TRIGGER IF NOT EXISTS everstep_schedule_deleted AFTER DELETE ON workflow_schedules
BEGIN
  INSERT INTO change_counters (topic, changes) VALUES ('schedules', 1)
  ON CONFLICT (topic) DO UPDATE SET changes = changes + 1;
END;

CREATE TRIGGER IF NOT EXISTS everstep_schedule_updated AFTER UPDATE OF
  schedule_id, schedule_name, workflow_name, workflow_class_name, schedule, status, context, automatic_backfill,
  cron_timezone, queue_name, application_name
ON workflow_schedules
BEGIN
  INSERT INTO change_counters (topic, changes) VALUES ('schedules', 1)
  ON CONFLICT (topic) DO UPDATE SET changes = changes + 1;
END;

-- Messages.

-- The oldest message that was not received yet is found without passing all those that were.
CREATE INDEX IF NOT EXISTS idx_notifications_unconsumed
  ON notifications (destination_uuid, topic, created_at_epoch_ms, message_uuid)
  WHERE consumed = FALSE;

-- Parked workflows.

-- What parked workflows wait for besides a time. Triggers wake them in the commit that brings it, whatever program that is
-- of, so that no wake-up is lost.
CREATE TABLE IF NOT EXISTS parked_waits (
  wait_key TEXT NOT NULL,
  workflow_uuid TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  kind TEXT NOT NULL,
  awaited_uuid TEXT NOT NULL,
  awaited_name TEXT,
  PRIMARY KEY (wait_key, workflow_uuid)
);

CREATE INDEX IF NOT EXISTS idx_parked_waits_workflow ON parked_waits (workflow_uuid);

-- The waits of a workflow end when it is no longer parked, whatever program changes it.
CREATE TRIGGER IF NOT EXISTS everstep_end_waits AFTER UPDATE OF status ON workflow_status
WHEN OLD.status = 'DELAYED' AND NEW.status <> 'DELAYED' AND OLD.owner_xid LIKE '%.%'
BEGIN
  DELETE FROM parked_waits WHERE workflow_uuid = NEW.workflow_uuid;
END;

CREATE TRIGGER IF NOT EXISTS everstep_wake_receivers AFTER INSERT ON notifications
WHEN EXISTS (SELECT 1 FROM parked_waits WHERE wait_key = 'message:' || NEW.destination_uuid || '::' || NEW.topic)
BEGIN
  UPDATE workflow_status SET status = 'ENQUEUED'
  WHERE workflow_uuid IN (
    SELECT p.workflow_uuid FROM parked_waits AS p
    WHERE p.wait_key = 'message:' || NEW.destination_uuid || '::' || NEW.topic
  ) AND +status = 'DELAYED' AND owner_xid LIKE '%.%';
  DELETE FROM parked_waits WHERE wait_key = 'message:' || NEW.destination_uuid || '::' || NEW.topic;
END;

CREATE TRIGGER IF NOT EXISTS everstep_wake_event_readers AFTER INSERT ON workflow_events
WHEN EXISTS (SELECT 1 FROM parked_waits WHERE wait_key = 'event:' || NEW.workflow_uuid || '::' || NEW.key)
BEGIN
  UPDATE workflow_status SET status = 'ENQUEUED'
  WHERE workflow_uuid IN (
    SELECT p.workflow_uuid FROM parked_waits AS p
    WHERE p.wait_key = 'event:' || NEW.workflow_uuid || '::' || NEW.key
  ) AND +status = 'DELAYED' AND owner_xid LIKE '%.%';
  DELETE FROM parked_waits WHERE wait_key = 'event:' || NEW.workflow_uuid || '::' || NEW.key;
END;

CREATE TRIGGER IF NOT EXISTS everstep_wake_result_waiters AFTER UPDATE OF status ON workflow_status
WHEN OLD.status IN ('ENQUEUED', 'DELAYED', 'PENDING') AND NEW.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING')
  AND EXISTS (SELECT 1 FROM parked_waits WHERE wait_key = 'outcome:' || NEW.workflow_uuid)
BEGIN
  UPDATE workflow_status SET status = 'ENQUEUED'
  WHERE workflow_uuid IN (
    SELECT p.workflow_uuid FROM parked_waits AS p WHERE p.wait_key = 'outcome:' || NEW.workflow_uuid
  ) AND +status = 'DELAYED' AND owner_xid LIKE '%.%';
  DELETE FROM parked_waits WHERE wait_key = 'outcome:' || NEW.workflow_uuid;
END;

-- A workflow that is deleted has no outcome, and its handles fail.
CREATE TRIGGER IF NOT EXISTS everstep_wake_waiters_of_deleted AFTER DELETE ON workflow_status
WHEN OLD.status IN ('ENQUEUED', 'DELAYED', 'PENDING')
  AND EXISTS (SELECT 1 FROM parked_waits WHERE wait_key = 'outcome:' || OLD.workflow_uuid)
BEGIN
  UPDATE workflow_status SET status = 'ENQUEUED'
  WHERE workflow_uuid IN (
    SELECT p.workflow_uuid FROM parked_waits AS p WHERE p.wait_key = 'outcome:' || OLD.workflow_uuid
  ) AND +status = 'DELAYED' AND owner_xid LIKE '%.%';
  DELETE FROM parked_waits WHERE wait_key = 'outcome:' || OLD.workflow_uuid;
END;

-- Checkpoints.

-- The failed attempts of steps that are retried, so that the next process continues the count and the backoff.
CREATE TABLE IF NOT EXISTS step_attempts (
  workflow_uuid TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  function_id INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  retry_at_epoch_ms BIGINT NOT NULL,
  errors TEXT NOT NULL,
  PRIMARY KEY (workflow_uuid, function_id)
);

-- Checkpoints are deleted with their workflow, and never looked up by age.
DROP INDEX IF EXISTS idx_operation_outputs_retention;

-- History.

CREATE TABLE IF NOT EXISTS journal (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  workflow_id TEXT NOT NULL,
  at BIGINT NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
  event_type TEXT NOT NULL,
  step INTEGER,
  attempt INTEGER,
  executor TEXT,
  actor TEXT,
  details TEXT,
  -- Tells a row that is written again from a new one, and a stored event from the same one in the other tables.
  key TEXT,
  -- The owner token of the run, if the row is about how an attempt began or how a workflow ended.
  owner TEXT,
  -- Of the step.
  name TEXT,
  started_at BIGINT,
  -- Tells the checkpoint of a step from a later one under the same number.
  completed_at BIGINT
);

CREATE INDEX IF NOT EXISTS idx_journal_workflow ON journal (workflow_id, step);

CREATE INDEX IF NOT EXISTS idx_journal_at ON journal (at);

CREATE UNIQUE INDEX IF NOT EXISTS uq_journal_key ON journal (workflow_id, key) WHERE key IS NOT NULL;

-- What the transaction in progress says about its changes: a source, a reason and an actor. Empty between transactions.
CREATE TABLE IF NOT EXISTS journal_notes (
  kind TEXT NOT NULL PRIMARY KEY,
  note TEXT NOT NULL
);

CREATE TRIGGER IF NOT EXISTS everstep_journal_not_deleted BEFORE DELETE ON journal
WHEN EXISTS (SELECT 1 FROM workflow_status AS w WHERE w.workflow_uuid = OLD.workflow_id)
  AND NOT EXISTS (SELECT 1 FROM journal_notes AS n WHERE n.kind = 'prune')
BEGIN
  SELECT RAISE(ABORT, 'The history of workflows is append-only.');
END;

-- A workflow may be given another ID.
CREATE TRIGGER IF NOT EXISTS everstep_journal_not_updated BEFORE UPDATE ON journal
WHEN OLD.workflow_id = NEW.workflow_id OR OLD.seq <> NEW.seq OR OLD.at <> NEW.at OR OLD.event_type <> NEW.event_type
  OR OLD.details IS NOT NEW.details OR OLD.actor IS NOT NEW.actor
BEGIN
  SELECT RAISE(ABORT, 'The history of workflows is append-only.');
END;

CREATE TRIGGER IF NOT EXISTS everstep_journal_deleted AFTER DELETE ON workflow_status
BEGIN
  DELETE FROM journal WHERE workflow_id = OLD.workflow_uuid AND event_type <> 'WorkflowDeleted';
END;

CREATE TRIGGER IF NOT EXISTS everstep_journal_renamed AFTER UPDATE OF workflow_uuid ON workflow_status
WHEN OLD.workflow_uuid <> NEW.workflow_uuid
BEGIN
  UPDATE journal SET workflow_id = NEW.workflow_uuid WHERE workflow_id = OLD.workflow_uuid;
END;

CREATE TRIGGER IF NOT EXISTS everstep_workflow_journaled
AFTER UPDATE OF status, delay_until_epoch_ms, priority ON workflow_status
WHEN (OLD.status IS NOT NEW.status AND (
    NEW.status IN ('CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED')
    OR (OLD.status = 'PENDING' AND NEW.status IN ('ENQUEUED', 'DELAYED')
      AND (OLD.started_at_epoch_ms IS NOT NULL OR OLD.queue_name IS NULL OR NEW.status = 'DELAYED'))
    OR (OLD.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING') AND NEW.status IN ('ENQUEUED', 'DELAYED', 'PENDING'))))
  OR (OLD.status IN ('ENQUEUED', 'DELAYED') AND NEW.status IN ('ENQUEUED', 'DELAYED')
    AND OLD.delay_until_epoch_ms IS NOT NEW.delay_until_epoch_ms)
  OR (OLD.priority <> NEW.priority AND NEW.status IN ('ENQUEUED', 'DELAYED', 'PENDING'))
BEGIN
  INSERT INTO journal (workflow_id, at, event_type, attempt, executor, actor, details)
  SELECT NEW.workflow_uuid, c.at, k.kind,
    IIF(OLD.status = 'PENDING', OLD.recovery_attempts + 0, NULL), IIF(OLD.status = 'PENDING', OLD.executor_id, NULL), c.actor,
    -- A merge with nothing removes the members that are null.
    json_patch('{}', json_patch(
      CASE
        WHEN k.kind = 'WorkflowTimedOut' THEN json_object(
          'from_status', CAST(OLD.status AS TEXT), 'queue', CAST(OLD.queue_name AS TEXT), 'started_at', OLD.started_at_epoch_ms + 0,
          'deadline', NEW.workflow_deadline_epoch_ms + 0, 'timeout_seconds', NEW.workflow_timeout_ms / 1000.0)
        WHEN k.kind = 'WorkflowCancelRequested' THEN json_object(
          'from_status', CAST(OLD.status AS TEXT), 'queue', CAST(OLD.queue_name AS TEXT), 'started_at', OLD.started_at_epoch_ms + 0)
        WHEN k.kind = 'WorkflowDeadLettered' THEN json_object('attempts', OLD.recovery_attempts + 0, 'queue', CAST(OLD.queue_name AS TEXT))
        WHEN k.kind IN ('WorkflowResumed', 'WorkflowRewound') THEN json_object(
          'from_status', CAST(OLD.status AS TEXT), 'queue', CAST(NEW.queue_name AS TEXT), 'attempts', OLD.recovery_attempts + 0,
          'completed_at', OLD.completed_at + 0, 'error', CAST(OLD.error AS TEXT), 'start_step', c.start_step)
        WHEN k.kind = 'WorkflowTaskYielded' THEN json_object(
          'until', NEW.delay_until_epoch_ms + 0, 'started_at', OLD.started_at_epoch_ms + 0)
        WHEN k.kind = 'AttemptLost' THEN json_object(
          'started_at', OLD.started_at_epoch_ms + 0, 'version', CAST(OLD.application_version AS TEXT))
        WHEN k.kind = 'DelayChanged' THEN json_object('from', OLD.delay_until_epoch_ms + 0, 'to', NEW.delay_until_epoch_ms + 0)
        ELSE json_object('from', OLD.priority + 0, 'to', NEW.priority + 0)
      END,
      json_object('reason', c.reason, 'source', CASE
        WHEN c.source IS NOT NULL THEN c.source
        WHEN k.kind = 'WorkflowTimedOut' THEN 'deadline'
        WHEN k.kind = 'WorkflowCancelRequested' THEN 'api'
        WHEN k.kind = 'WorkflowResumed' THEN 'resume'
        WHEN k.kind = 'WorkflowRewound' THEN 'rewind'
        WHEN k.kind = 'AttemptLost' THEN 'recovery' END)))
  FROM (
    SELECT n.note ->> 'source' AS source, n.note ->> 'reason' AS reason, n.note ->> 'actor' AS actor,
      n.note ->> 'startStep' AS start_step,
      IIF(NEW.updated_at <> OLD.updated_at, NEW.updated_at, CAST(unixepoch('subsec') * 1000 AS INTEGER)) AS at
    FROM (SELECT 1) LEFT JOIN journal_notes AS n ON n.kind = 'change') AS c
  CROSS JOIN (
    SELECT CASE
      WHEN NEW.status = 'CANCELLED' AND OLD.status IS NOT 'CANCELLED' THEN IIF(
        COALESCE(
          (SELECT n.note ->> 'source' FROM journal_notes AS n WHERE n.kind = 'change'),
          IIF(NEW.workflow_deadline_epoch_ms <= NEW.updated_at, 'deadline', 'api')) = 'deadline',
        'WorkflowTimedOut', 'WorkflowCancelRequested')
      WHEN NEW.status = 'MAX_RECOVERY_ATTEMPTS_EXCEEDED' AND OLD.status IS NOT NEW.status THEN 'WorkflowDeadLettered'
      WHEN EXISTS (SELECT 1 FROM journal_notes AS n WHERE n.kind = 'change' AND n.note ->> 'source' = 'rewind')
        THEN 'WorkflowRewound'
      WHEN EXISTS (SELECT 1 FROM journal_notes AS n WHERE n.kind = 'change' AND n.note ->> 'source' = 'resume')
        THEN 'WorkflowResumed'
      WHEN OLD.status IN ('SUCCESS', 'ERROR') THEN 'WorkflowRewound'
      WHEN OLD.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING') THEN 'WorkflowResumed'
      WHEN OLD.status = 'PENDING' AND NEW.status = 'DELAYED' THEN 'WorkflowTaskYielded'
      WHEN OLD.status = 'PENDING' AND NEW.status = 'ENQUEUED' THEN 'AttemptLost'
      WHEN OLD.delay_until_epoch_ms IS NOT NEW.delay_until_epoch_ms THEN 'DelayChanged'
      ELSE 'PriorityChanged' END AS kind) AS k;
END;

CREATE TRIGGER IF NOT EXISTS everstep_fork_journaled AFTER INSERT ON workflow_status
WHEN NEW.forked_from IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM journal_notes AS n WHERE n.kind = 'change' AND n.note ->> 'source' = 'import')
BEGIN
  INSERT INTO journal (workflow_id, at, event_type, actor, details)
  SELECT w.workflow_uuid, NEW.created_at, 'WorkflowForked', n.note ->> 'actor', json_patch('{}', json_object(
    'new_id', CAST(NEW.workflow_uuid AS TEXT), 'version', CAST(NEW.application_version AS TEXT), 'reason', n.note ->> 'reason'))
  FROM workflow_status AS w
  LEFT JOIN journal_notes AS n ON n.kind = 'change'
  WHERE w.workflow_uuid = NEW.forked_from;
END;

CREATE VIEW IF NOT EXISTS journal_events AS
SELECT j.workflow_id, j.seq, p.part, j.at,
  CASE p.part WHEN 1 THEN 'AttemptStarted' WHEN 2 THEN 'ActivityScheduled' ELSE j.event_type END AS event_type,
  IIF(p.part <> 1, j.step, NULL) AS step,
  IIF(p.part = 1 OR j.owner IS NULL, j.attempt, NULL) AS attempt,
  j.executor, j.actor,
  CASE
    -- A merge with nothing removes the members that are null.
    WHEN p.part = 1 THEN IIF(json_valid(COALESCE(j.details, '{}')), json_patch('{}', json_object(
      'version', j.details ->> 'version', 'queue', j.details ->> 'queue')), NULL)
    WHEN p.part = 2 THEN json_object('activity_name', CAST(j.name AS TEXT), 'input', json(
      IIF(json_valid(j.details), COALESCE(j.details -> 'input', 'null'), 'null')))
    WHEN p.part = 3 AND j.event_type IN ('ActivityCompleted', 'ActivityFailed') AND j.completed_at IS NOT NULL
      THEN json_object('activity_name', CAST(j.name AS TEXT), 'duration_ms', j.completed_at - j.started_at)
    WHEN p.part = 3 AND j.event_type IN ('WorkflowCompleted', 'WorkflowFailed') AND j.completed_at IS NOT NULL
      THEN json_object('duration_ms', j.completed_at - j.started_at)
    ELSE j.details
  END AS details,
  j.completed_at, j.owner,
  COALESCE(j.key, CASE
    WHEN p.part = 0 THEN 'started'
    WHEN p.part = 1 THEN 'attempt:' || j.owner
    WHEN j.step IS NOT NULL
      THEN 'step:' || j.step || IIF(p.part = 2 OR j.event_type = 'TimerScheduled', ':begun:', ':done:') || j.completed_at
    ELSE 'outcome:' || j.owner
  END) AS key
FROM journal AS j
JOIN (SELECT 0 AS part UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3) AS p ON CASE p.part
  WHEN 0 THEN j.event_type = 'WorkflowStarted'
  WHEN 1 THEN j.attempt IS NOT NULL AND j.owner IS NOT NULL
  WHEN 2 THEN j.event_type IN ('ActivityCompleted', 'ActivityFailed') AND j.completed_at IS NOT NULL
  ELSE j.event_type NOT IN ('WorkflowStarted', 'PayloadKept') END;

CREATE VIEW IF NOT EXISTS history AS
SELECT e.workflow_id,
  CASE
    WHEN e.part = 0 THEN 0
    -- Before a workflow that was started under the same ID later, and after what happened to one that was restored.
    WHEN e.event_type = 'WorkflowDeleted' THEN COALESCE((
      SELECT IIF(n.created_at < e.at, 2, 0) FROM workflow_status AS n WHERE n.workflow_uuid = e.workflow_id), 0)
    ELSE 1
  END AS phase, e.at, e.step,
  IIF(e.part = 2 OR (e.step IS NOT NULL AND e.event_type IN ('ActivityScheduled', 'TimerScheduled')), 0, 1) AS part,
  e.seq, e.event_type, e.attempt, e.executor, e.actor,
  IIF(k.key IS NULL, e.details, json_patch(COALESCE(e.details, '{}'), k.details)) AS details,
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
FROM journal_events AS e
LEFT JOIN operation_outputs AS o
  ON o.workflow_uuid = e.workflow_id AND o.function_id = e.step AND o.completed_at_epoch_ms = e.completed_at AND e.part = 3
  AND e.event_type NOT IN ('TimerScheduled', 'TimerFired')
LEFT JOIN workflow_status AS w
  ON w.workflow_uuid = e.workflow_id AND (e.part = 0 OR (
    e.event_type IN ('WorkflowCompleted', 'WorkflowFailed') AND e.owner = w.owner_xid AND w.status IN ('SUCCESS', 'ERROR')))
-- What a rewind has deleted.
LEFT JOIN journal AS k
  ON k.workflow_id = e.workflow_id AND k.key = 'payload:' || e.seq AND e.part = 3 AND e.completed_at IS NOT NULL
UNION ALL
SELECT w.workflow_uuid, 0, w.created_at, NULL, 0, NULL, 'WorkflowStarted', NULL, NULL, NULL,
  json_patch('{}', json_object(
    'workflow_name', w.name, 'class_name', NULLIF(w.class_name, ''), 'config_name', NULLIF(w.config_name, ''),
    'queue', w.queue_name, 'priority', w.priority, 'partition_key', w.queue_partition_key,
    'timeout_ms', w.workflow_timeout_ms, 'parent_id', w.parent_workflow_id, 'forked_from', w.forked_from,
    'schedule', w.schedule_name, 'version', w.application_version)),
  'input', COALESCE(w.inputs, i.inputs), w.serialization, 'started'
FROM workflow_status AS w
LEFT JOIN workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
WHERE NOT EXISTS (SELECT 1 FROM journal AS s WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL AND s.event_type = 'WorkflowStarted')
UNION ALL
SELECT w.workflow_uuid, 1, w.started_at_epoch_ms, NULL, 0, NULL, 'AttemptStarted', w.recovery_attempts, w.executor_id, NULL,
  json_patch('{}', json_object('version', w.application_version, 'queue', w.queue_name)), NULL, NULL, NULL,
  'attempt:' || w.owner_xid
FROM workflow_status AS w
WHERE w.started_at_epoch_ms IS NOT NULL AND w.status NOT IN ('ENQUEUED', 'DELAYED') AND NOT EXISTS (
  SELECT 1 FROM journal AS s
  WHERE s.workflow_id = w.workflow_uuid AND s.attempt IS NOT NULL
    AND (s.owner = w.owner_xid OR s.key = 'attempt:' || w.owner_xid))
UNION ALL
SELECT o.workflow_uuid, 1,
  CASE
    WHEN p.part = 0 THEN COALESCE(o.started_at_epoch_ms, o.completed_at_epoch_ms, o.retention_timestamp)
    WHEN o.function_name = 'DBOS.sleep' THEN COALESCE(
      CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER), o.completed_at_epoch_ms)
    ELSE COALESCE(o.completed_at_epoch_ms, o.retention_timestamp)
  END,
  o.function_id, p.part, NULL,
  CASE
    WHEN o.function_name = 'DBOS.sleep' THEN IIF(p.part = 0, 'TimerScheduled', 'TimerFired')
    WHEN p.part = 0 THEN 'ActivityScheduled'
    WHEN o.function_name = 'DBOS.getResult' THEN 'ChildWorkflowCompleted'
    WHEN o.child_workflow_id IS NOT NULL AND o.function_name NOT LIKE 'DBOS.%' THEN 'ChildWorkflowStarted'
    WHEN o.function_name = 'DBOS.recv' THEN IIF(
      o.output IS NULL OR o.output = 'null' OR o.output LIKE '{"json":null%', 'ReceiveTimedOut', 'MessageConsumed')
    WHEN o.function_name = 'DBOS.setEvent' THEN 'EventSet'
    WHEN o.function_name = 'DBOS.closeStream' THEN 'StreamClosed'
    WHEN o.function_name LIKE 'DBOS.patch-%' THEN 'WorkflowPatched'
    WHEN o.function_name LIKE 'DBOS.%' THEN 'OperationCompleted'
    WHEN o.error IS NOT NULL THEN 'ActivityFailed'
    ELSE 'ActivityCompleted'
  END,
  NULL, NULL, NULL,
  CASE
    WHEN o.function_name = 'DBOS.sleep' THEN json_object(
      'timer_id', o.workflow_uuid || ':' || o.function_id, IIF(p.part = 0, 'fire_at', 'fired_at'),
      strftime('%Y-%m-%dT%H:%M:%fZ',
        CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER) / 1000.0, 'unixepoch'))
    WHEN p.part = 0 THEN json_object('activity_name', o.function_name, 'input', NULL)
    WHEN o.child_workflow_id IS NOT NULL THEN json_object('child_id', o.child_workflow_id, 'name', o.function_name)
    WHEN o.function_name = 'DBOS.setEvent' THEN json_object('key', (
      SELECT h.key FROM workflow_events_history AS h
      WHERE h.workflow_uuid = o.workflow_uuid AND h.function_id = o.function_id LIMIT 1))
    WHEN o.function_name LIKE 'DBOS.patch-%' THEN json_object('patch', SUBSTR(o.function_name, 12))
    WHEN o.function_name LIKE 'DBOS.%' THEN json_object('operation', o.function_name)
    ELSE json_object('activity_name', o.function_name, 'duration_ms', o.completed_at_epoch_ms - o.started_at_epoch_ms)
  END,
  IIF(p.part = 1 AND o.function_name <> 'DBOS.sleep', IIF(o.error IS NULL, 'result', 'error'), NULL),
  IIF(p.part = 1 AND o.function_name <> 'DBOS.sleep', COALESCE(o.output, o.error), NULL),
  o.serialization,
  'step:' || o.function_id || IIF(p.part = 0, ':begun:', ':done:') || COALESCE(o.completed_at_epoch_ms, 0)
FROM operation_outputs AS o
JOIN (SELECT 0 AS part UNION ALL SELECT 1) AS p
  ON (p.part = 1 OR o.function_name = 'DBOS.sleep'
    OR (o.function_name NOT LIKE 'DBOS.%' AND o.child_workflow_id IS NULL))
  -- A sleep records when it ends: a number, or superjson that contains it. The timer of a wait is recorded before it ends,
  -- and says nothing of how the wait ended.
  AND (p.part = 0 OR o.function_name <> 'DBOS.sleep'
    OR CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER)
      <= MIN(o.completed_at_epoch_ms, CAST(unixepoch('subsec') * 1000 AS INTEGER)))
-- Only the events of a sleep are stored one by one. Those of a step are looked for once, before they are told apart.
WHERE (o.function_name = 'DBOS.sleep' OR NOT EXISTS (
    SELECT 1 FROM journal AS s
    WHERE s.workflow_id = o.workflow_uuid AND s.step = o.function_id AND s.completed_at = COALESCE(o.completed_at_epoch_ms, 0)))
  AND (o.function_name <> 'DBOS.sleep' OR NOT EXISTS (
    SELECT 1 FROM journal AS s
    WHERE s.workflow_id = o.workflow_uuid AND s.step = o.function_id AND s.completed_at = COALESCE(o.completed_at_epoch_ms, 0)
      AND (s.event_type = 'TimerFired') = (p.part = 1)))
UNION ALL
SELECT n.destination_uuid, 1, n.created_at_epoch_ms, NULL, 0, NULL, 'SignalReceived', NULL, NULL, NULL,
  json_object('signal_name', NULLIF(n.topic, '__null__topic__'), 'message_id', n.message_uuid),
  'input', n.message, n.serialization, 'message:' || n.message_uuid
FROM notifications AS n
WHERE NOT EXISTS (
  SELECT 1 FROM journal AS s WHERE s.workflow_id = n.destination_uuid AND s.key = 'message:' || n.message_uuid)
UNION ALL
SELECT w.workflow_uuid, 2, COALESCE(w.completed_at, w.updated_at), NULL, 0, NULL,
  CASE w.status WHEN 'SUCCESS' THEN 'WorkflowCompleted' WHEN 'ERROR' THEN 'WorkflowFailed' ELSE 'WorkflowCanceled' END,
  NULL, NULL, NULL, json_object('duration_ms', COALESCE(w.completed_at, w.updated_at) - w.created_at),
  CASE w.status WHEN 'SUCCESS' THEN 'result' WHEN 'ERROR' THEN 'error' END,
  COALESCE(w.output, r.output, w.error, r.error), w.serialization, 'outcome:' || w.owner_xid
FROM workflow_status AS w
LEFT JOIN workflow_output AS r ON r.workflow_uuid = w.workflow_uuid
WHERE (w.status IN ('SUCCESS', 'ERROR') OR (w.status = 'CANCELLED' AND COALESCE((
  SELECT j.event_type FROM journal AS j
  WHERE j.workflow_id = w.workflow_uuid AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
  ORDER BY j.seq DESC LIMIT 1), '') <> 'WorkflowTimedOut')) AND NOT EXISTS (
  SELECT 1 FROM journal AS s
  WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL
    AND ((s.owner = w.owner_xid AND s.event_type IN ('WorkflowCompleted', 'WorkflowFailed')) OR s.key = 'outcome:' || w.owner_xid));

-- The history of workflows: the rows of the journal, and the events that follow from the other tables.
CREATE TABLE IF NOT EXISTS journal_timers (
  timer_id TEXT NOT NULL PRIMARY KEY,
  workflow_id TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  fire_at BIGINT NOT NULL,
  fired BOOLEAN NOT NULL DEFAULT FALSE,
  created_at BIGINT NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER))
);

CREATE INDEX IF NOT EXISTS idx_journal_timers_pending ON journal_timers (fire_at) WHERE NOT fired;

CREATE INDEX IF NOT EXISTS idx_journal_timers_workflow ON journal_timers (workflow_id);

-- The same in the form of sched's tables.
CREATE VIEW IF NOT EXISTS history_workflow_executions AS
SELECT w.workflow_uuid AS workflow_id, COALESCE(w.creator_xid, w.workflow_uuid) AS run_id, w.name,
  CASE
    WHEN w.status IN ('ENQUEUED', 'DELAYED', 'PENDING') THEN 'RUNNING'
    WHEN w.status = 'SUCCESS' THEN 'COMPLETED'
    WHEN w.status <> 'CANCELLED' THEN 'FAILED'
    WHEN (
      SELECT j.event_type FROM journal AS j
      WHERE j.workflow_id = w.workflow_uuid AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
      ORDER BY j.seq DESC LIMIT 1) = 'WorkflowTimedOut' THEN 'TIMED_OUT'
    ELSE 'CANCELED'
  END AS status,
  CASE
    WHEN NOT json_valid(COALESCE(w.inputs, i.inputs)) THEN json_quote(COALESCE(w.inputs, i.inputs))
    WHEN COALESCE(w.inputs, i.inputs) -> '$.__dbos_serializer' IS NOT NULL THEN COALESCE(w.inputs, i.inputs) -> '$.json'
    ELSE COALESCE(w.inputs, i.inputs)
  END AS input,
  CASE
    WHEN NOT json_valid(COALESCE(w.output, r.output)) THEN json_quote(COALESCE(w.output, r.output))
    WHEN COALESCE(w.output, r.output) -> '$.__dbos_serializer' IS NOT NULL THEN COALESCE(w.output, r.output) -> '$.json'
    ELSE COALESCE(w.output, r.output)
  END AS result,
  COALESCE(w.error, r.error) AS error,
  strftime('%Y-%m-%dT%H:%M:%fZ', w.created_at / 1000.0, 'unixepoch') AS start_time,
  strftime('%Y-%m-%dT%H:%M:%fZ', w.completed_at / 1000.0, 'unixepoch') AS end_time,
  -- Each transition moves to a later stage, or adds to the journal more than a step back takes away.
  1 + CASE w.status WHEN 'DELAYED' THEN 0 WHEN 'ENQUEUED' THEN 1 WHEN 'PENDING' THEN 2 ELSE 3 END + COALESCE((
    SELECT SUM(IIF(
      j.event_type IN ('AttemptLost', 'WorkflowResumed', 'WorkflowRewound', 'WorkflowTaskYielded', 'DelayChanged'), 4, 1))
    FROM journal AS j WHERE j.workflow_id = w.workflow_uuid), 0) AS version
FROM workflow_status AS w
LEFT JOIN workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
LEFT JOIN workflow_output AS r ON r.workflow_uuid = w.workflow_uuid;

CREATE TRIGGER IF NOT EXISTS everstep_execution_deleted INSTEAD OF DELETE ON history_workflow_executions
BEGIN
  DELETE FROM workflow_status WHERE workflow_uuid = OLD.workflow_id;
  DELETE FROM workflow_input WHERE workflow_uuid = OLD.workflow_id;
  DELETE FROM workflow_output WHERE workflow_uuid = OLD.workflow_id;
END;

CREATE VIEW IF NOT EXISTS history_workflow_events AS
SELECT h.workflow_id,
  ROW_NUMBER() OVER (
    PARTITION BY h.workflow_id ORDER BY h.phase, h.at,
      CASE WHEN h.event_type = 'AttemptStarted' THEN -1 ELSE COALESCE(h.step, 2147483647) END, h.part, h.seq) AS idx,
  h.event_type, strftime('%Y-%m-%dT%H:%M:%fZ', h.at / 1000.0, 'unixepoch') AS timestamp,
  CASE
    WHEN h.payload_name IS NULL THEN COALESCE(h.details, '{}')
    ELSE json_set(COALESCE(h.details, '{}'), '$.' || h.payload_name, json(CASE
      WHEN NOT json_valid(h.payload) THEN json_quote(h.payload)
      WHEN h.payload -> '$.__dbos_serializer' IS NOT NULL THEN h.payload -> '$.json'
      ELSE COALESCE(h.payload, 'null') END))
  END AS details
FROM history AS h;

CREATE VIEW IF NOT EXISTS history_tasks AS
SELECT COALESCE(w.owner_xid, w.creator_xid, '') || '/' || w.workflow_uuid AS task_token, w.workflow_uuid AS workflow_id,
  'WORKFLOW' AS kind, NULL AS activity_name,
  CASE
    WHEN NOT json_valid(COALESCE(w.inputs, i.inputs)) THEN json_quote(COALESCE(w.inputs, i.inputs))
    WHEN COALESCE(w.inputs, i.inputs) -> '$.__dbos_serializer' IS NOT NULL THEN COALESCE(w.inputs, i.inputs) -> '$.json'
    ELSE COALESCE(w.inputs, i.inputs)
  END AS input,
  IIF(w.status = 'PENDING', 'IN_FLIGHT', 'PENDING') AS status,
  IIF(w.status = 'PENDING', w.owner_xid, NULL) AS claim_token,
  strftime('%Y-%m-%dT%H:%M:%fZ', e.lease_until_epoch_ms / 1000.0, 'unixepoch') AS visibility_timeout,
  strftime('%Y-%m-%dT%H:%M:%fZ', w.created_at / 1000.0, 'unixepoch') AS created_at
FROM workflow_status AS w
LEFT JOIN workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
LEFT JOIN executors AS e
  ON w.status = 'PENDING' AND e.incarnation_id = SUBSTR(w.owner_xid, 1, INSTR(w.owner_xid, '.') - 1)
WHERE w.status IN ('ENQUEUED', 'DELAYED', 'PENDING');

CREATE VIEW IF NOT EXISTS history_timers AS
SELECT t.timer_id, t.workflow_id, strftime('%Y-%m-%dT%H:%M:%fZ', t.fire_at / 1000.0, 'unixepoch') AS fire_at,
  IIF(t.fired OR (t.kind NOT IN ('own', 'schedule') AND t.fire_at <= unixepoch('subsec') * 1000), 1, 0) AS fired,
  strftime('%Y-%m-%dT%H:%M:%fZ', t.created_at / 1000.0, 'unixepoch') AS created_at, t.kind
FROM (
  SELECT m.timer_id, m.workflow_id, m.fire_at, m.fired, m.created_at, 'own' AS kind
  FROM journal_timers AS m
  UNION ALL
  SELECT o.workflow_uuid || ':' || o.function_id, o.workflow_uuid,
    CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER), FALSE,
    COALESCE(o.started_at_epoch_ms, o.retention_timestamp), 'sleep'
  FROM workflow_status AS w
  JOIN operation_outputs AS o ON o.workflow_uuid = w.workflow_uuid AND o.function_name = 'DBOS.sleep'
  WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED')
  UNION ALL
  SELECT w.workflow_uuid || ':delay', w.workflow_uuid, w.delay_until_epoch_ms, FALSE, w.created_at, 'delay'
  FROM workflow_status AS w
  WHERE w.status = 'DELAYED' AND w.delay_until_epoch_ms IS NOT NULL
  UNION ALL
  SELECT w.workflow_uuid || ':deadline', w.workflow_uuid, w.workflow_deadline_epoch_ms, FALSE,
    COALESCE(w.started_at_epoch_ms, w.created_at), 'deadline'
  FROM workflow_status AS w
  WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND w.workflow_deadline_epoch_ms IS NOT NULL
  UNION ALL
  -- The backoff of a step that will be repeated.
  SELECT a.workflow_uuid || ':' || a.function_id || ':retry', a.workflow_uuid, a.retry_at_epoch_ms, FALSE,
    COALESCE(w.started_at_epoch_ms, w.created_at), 'retry'
  FROM step_attempts AS a
  JOIN workflow_status AS w ON w.workflow_uuid = a.workflow_uuid
  LEFT JOIN operation_outputs AS o ON o.workflow_uuid = a.workflow_uuid AND o.function_id = a.function_id
  WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND o.workflow_uuid IS NULL
  UNION ALL
  -- Of the workflow that it will start.
  SELECT 'schedule:' || s.schedule_name,
    'sched-' || s.schedule_name || '-' || strftime('%Y-%m-%dT%H:%M:%fZ', n.due_at / 1000.0, 'unixepoch'),
    n.fire_at, FALSE, n.created_at, 'schedule'
  FROM schedule_timers AS n
  JOIN workflow_schedules AS s ON s.schedule_id = n.schedule_id
  WHERE s.status = 'ACTIVE'
) AS t;

-- Where the workflows are that retention has archived and deleted: the object of the archive that holds each.
CREATE TABLE IF NOT EXISTS archived_workflows (
  workflow_uuid TEXT NOT NULL PRIMARY KEY,
  object_name TEXT NOT NULL,
  archived_at BIGINT NOT NULL
);
