-- The history of a workflow stays with its export and its archived copy. Who deleted a workflow, and why, is a row of the
-- journal, so that readers who follow it see the deletion.
SET LOCAL lock_timeout = '3s';

-- Locks the original, so that it cannot be deleted before this row is committed. An import brings the rows of its workflows.
CREATE OR REPLACE FUNCTION {schema}.everstep_journal_fork() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  note JSONB := NULLIF(current_setting('everstep.change', TRUE), '')::JSONB;
BEGIN
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

-- With the rights of its owner: another program's role need not know the journal.
CREATE OR REPLACE FUNCTION {schema}.everstep_journal_follow() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM {schema}.journal AS j WHERE j.workflow_id = OLD.workflow_uuid AND j.event_type <> 'WorkflowDeleted';
  ELSIF TG_OP = 'UPDATE' THEN
    UPDATE {schema}.journal AS j SET workflow_id = NEW.workflow_uuid WHERE j.workflow_id = OLD.workflow_uuid;
  ELSE
    DELETE FROM {schema}.journal;
  END IF;
  RETURN NULL;
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

-- Missing if this runs again.
CREATE TABLE IF NOT EXISTS {schema}.deleted_workflows (
  workflow_uuid TEXT NOT NULL,
  deleted_at BIGINT NOT NULL,
  name TEXT,
  actor TEXT,
  reason TEXT,
  PRIMARY KEY (workflow_uuid, deleted_at)
);
INSERT INTO {schema}.journal (workflow_id, at, event_type, actor, details)
SELECT g.workflow_uuid, g.deleted_at, 'WorkflowDeleted', g.actor,
  jsonb_strip_nulls(jsonb_build_object('workflow_name', g.name, 'reason', g.reason))
FROM {schema}.deleted_workflows AS g
ORDER BY g.workflow_uuid, g.deleted_at;
DROP TABLE {schema}.deleted_workflows;
