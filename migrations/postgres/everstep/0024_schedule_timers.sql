-- When each schedule fires next, which only code can tell. Engines write it for the view of timers.
CREATE TABLE IF NOT EXISTS {schema}.schedule_timers (
  schedule_id TEXT PRIMARY KEY
    REFERENCES {schema}.workflow_schedules (schedule_id) ON UPDATE CASCADE ON DELETE CASCADE,
  -- The time of the occurrence, which is part of its workflow's ID, and that time with the jitter.
  due_at BIGINT NOT NULL,
  fire_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);

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
