-- The history of a workflow stays with its export and its archived copy. Who deleted a workflow, and why, is a row of the
-- journal, so that readers who follow it see the deletion.

-- Without the foreign key, which was checked for each row: triggers take its place.
-- The first table is missing if this runs again.
CREATE TABLE IF NOT EXISTS deleted_workflows (workflow_uuid TEXT, deleted_at BIGINT, name TEXT, actor TEXT, reason TEXT);
DROP TABLE IF EXISTS journal_saved;
CREATE TABLE journal_saved AS
SELECT j.seq, j.workflow_id, j.at, j.event_type, j.step, j.attempt, j.executor, j.actor, j.details, j.key, j.owner, j.name, j.started_at, j.completed_at
FROM journal AS j;
-- Numbers are never used twice: readers remember the last one.
DROP TABLE IF EXISTS journal_last;
CREATE TABLE journal_last AS SELECT n.seq FROM sqlite_sequence AS n WHERE n.name = 'journal';
DROP TABLE journal;
CREATE TABLE journal (
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
INSERT INTO journal (seq, workflow_id, at, event_type, step, attempt, executor, actor, details, key, owner, name, started_at, completed_at)
SELECT j.seq, j.workflow_id, j.at, j.event_type, j.step, j.attempt, j.executor, j.actor, j.details, j.key, j.owner, j.name, j.started_at, j.completed_at
FROM journal_saved AS j
ORDER BY j.seq;
DROP TABLE journal_saved;
INSERT INTO sqlite_sequence (name, seq)
SELECT 'journal', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence AS n WHERE n.name = 'journal');
UPDATE sqlite_sequence SET seq = MAX(seq, COALESCE((SELECT l.seq FROM journal_last AS l), 0)) WHERE name = 'journal';
DROP TABLE journal_last;
INSERT INTO journal (workflow_id, at, event_type, actor, details)
SELECT g.workflow_uuid, g.deleted_at, 'WorkflowDeleted', g.actor,
  json_patch('{}', json_object('workflow_name', g.name, 'reason', g.reason))
FROM deleted_workflows AS g
ORDER BY g.deleted_at;
CREATE INDEX IF NOT EXISTS idx_journal_workflow ON journal (workflow_id, step);
CREATE INDEX IF NOT EXISTS idx_journal_at ON journal (at);
CREATE UNIQUE INDEX IF NOT EXISTS uq_journal_key ON journal (workflow_id, key) WHERE key IS NOT NULL;

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

-- An import brings the rows of its workflows.
DROP TRIGGER IF EXISTS everstep_fork_journaled;
CREATE TRIGGER everstep_fork_journaled AFTER INSERT ON workflow_status
WHEN NEW.forked_from IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM journal_notes AS n WHERE n.kind = 'change' AND n.note ->> 'source' = 'import')
BEGIN
  INSERT INTO journal (workflow_id, at, event_type, actor, details)
  SELECT w.workflow_uuid, NEW.created_at, 'WorkflowForked', n.note ->> 'actor', json_patch('{}', json_object(
    'new_id', NEW.workflow_uuid, 'version', NEW.application_version, 'reason', n.note ->> 'reason'))
  FROM workflow_status AS w
  LEFT JOIN journal_notes AS n ON n.kind = 'change'
  WHERE w.workflow_uuid = NEW.forked_from;
END;

DROP VIEW IF EXISTS history;
CREATE VIEW history AS
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

DROP TABLE deleted_workflows;
