-- The history of workflows: the rows of the journal, and the events that follow from the other tables.
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

CREATE OR REPLACE VIEW {schema}.history AS
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
FROM {schema}.journal AS j
LEFT JOIN {schema}.operation_outputs AS o
  ON o.workflow_uuid = j.workflow_id AND o.function_id = j.step AND j.event_type IN ('ActivityCompleted', 'ActivityFailed')
  AND j.key = 'step:' || o.function_id || ':done:' || COALESCE(o.completed_at_epoch_ms, 0)
LEFT JOIN {schema}.workflow_status AS w
  ON w.workflow_uuid = j.workflow_id AND (j.key = 'started' OR j.key = 'outcome:' || w.owner_xid)
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
  UNION ALL
  SELECT w.workflow_uuid, 1, w.started_at_epoch_ms, NULL, 0, 'AttemptStarted', w.recovery_attempts::INTEGER, w.executor_id,
    jsonb_strip_nulls(jsonb_build_object('version', w.application_version, 'queue', w.queue_name)), NULL, NULL, NULL,
    'attempt:' || w.owner_xid
  FROM {schema}.workflow_status AS w
  WHERE w.started_at_epoch_ms IS NOT NULL AND w.status NOT IN ('ENQUEUED', 'DELAYED')
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
  UNION ALL
  SELECT n.destination_uuid, 1, n.created_at_epoch_ms, NULL, 0, 'SignalReceived', NULL, NULL,
    jsonb_build_object('signal_name', NULLIF(n.topic, '__null__topic__'), 'message_id', n.message_uuid),
    'input', n.message, n.serialization, 'message:' || n.message_uuid
  FROM {schema}.notifications AS n
  UNION ALL
  SELECT w.workflow_uuid, 2, COALESCE(w.completed_at, w.updated_at), NULL, 0,
    CASE w.status WHEN 'SUCCESS' THEN 'WorkflowCompleted' WHEN 'ERROR' THEN 'WorkflowFailed' ELSE 'WorkflowCanceled' END,
    NULL, NULL, jsonb_build_object('duration_ms', COALESCE(w.completed_at, w.updated_at) - w.created_at),
    CASE w.status WHEN 'SUCCESS' THEN 'result' WHEN 'ERROR' THEN 'error' END,
    COALESCE(w.output, r.output, w.error, r.error), w.serialization, 'outcome:' || w.owner_xid
  FROM {schema}.workflow_status AS w
  LEFT JOIN {schema}.workflow_output AS r ON r.workflow_uuid = w.workflow_uuid
  WHERE w.status IN ('SUCCESS', 'ERROR') OR (w.status = 'CANCELLED' AND COALESCE((
    SELECT j.event_type FROM {schema}.journal AS j
    WHERE j.workflow_id = w.workflow_uuid AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
    ORDER BY j.seq DESC LIMIT 1), '') <> 'WorkflowTimedOut')
) AS d
-- Not NOT EXISTS: the planner would hash the whole journal for it.
WHERE (SELECT s.key FROM {schema}.journal AS s WHERE s.workflow_id = d.workflow_id AND s.key = d.key LIMIT 1) IS NULL;

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
    t.fired OR (t.kind <> 'own' AND t.fire_at <= FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT) AS fired,
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
  ) AS t;
  RETURN TRUE;
EXCEPTION
  WHEN insufficient_privilege THEN
    RETURN FALSE;
END;
$body$;

SELECT {schema}.everstep_create_history();
