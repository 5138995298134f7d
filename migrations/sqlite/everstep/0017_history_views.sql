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

CREATE VIEW IF NOT EXISTS history AS
SELECT j.workflow_id, CASE WHEN j.key = 'started' THEN 0 ELSE 1 END AS phase, j.at, j.step,
  CASE WHEN j.step IS NOT NULL AND j.event_type IN ('ActivityScheduled', 'TimerScheduled') THEN 0 ELSE 1 END AS part,
  j.seq, j.event_type, j.attempt, j.executor, j.actor, j.details,
  CASE
    WHEN j.key = 'started' THEN 'input'
    WHEN w.status = 'SUCCESS' OR (o.function_id IS NOT NULL AND o.error IS NULL) THEN 'result'
    WHEN w.status = 'ERROR' OR o.error IS NOT NULL THEN 'error'
  END AS payload_name,
  CASE
    WHEN j.key = 'started' THEN w.inputs
    WHEN w.workflow_uuid IS NOT NULL THEN COALESCE(w.output, w.error)
    ELSE COALESCE(o.output, o.error)
  END AS payload,
  COALESCE(w.serialization, o.serialization) AS serialization, j.key
FROM journal AS j
LEFT JOIN operation_outputs AS o
  ON o.workflow_uuid = j.workflow_id AND o.function_id = j.step AND j.event_type IN ('ActivityCompleted', 'ActivityFailed')
  AND j.key = 'step:' || o.function_id || ':done:' || COALESCE(o.completed_at_epoch_ms, 0)
LEFT JOIN workflow_status AS w
  ON w.workflow_uuid = j.workflow_id AND (j.key = 'started' OR j.key = 'outcome:' || w.owner_xid)
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
WHERE NOT EXISTS (SELECT 1 FROM journal AS s WHERE s.workflow_id = w.workflow_uuid AND s.key = 'started')
UNION ALL
SELECT w.workflow_uuid, 1, w.started_at_epoch_ms, NULL, 0, NULL, 'AttemptStarted', w.recovery_attempts, w.executor_id, NULL,
  json_patch('{}', json_object('version', w.application_version, 'queue', w.queue_name)), NULL, NULL, NULL,
  'attempt:' || w.owner_xid
FROM workflow_status AS w
WHERE w.started_at_epoch_ms IS NOT NULL AND w.status NOT IN ('ENQUEUED', 'DELAYED') AND NOT EXISTS (
  SELECT 1 FROM journal AS s WHERE s.workflow_id = w.workflow_uuid AND s.key = 'attempt:' || w.owner_xid)
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
WHERE NOT EXISTS (
  SELECT 1 FROM journal AS s
  WHERE s.workflow_id = o.workflow_uuid
    AND s.key = 'step:' || o.function_id || IIF(p.part = 0, ':begun:', ':done:') || COALESCE(o.completed_at_epoch_ms, 0))
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
  SELECT 1 FROM journal AS s WHERE s.workflow_id = w.workflow_uuid AND s.key = 'outcome:' || w.owner_xid);

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
  IIF(t.fired OR (t.kind <> 'own' AND t.fire_at <= unixepoch('subsec') * 1000), 1, 0) AS fired,
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
) AS t;
