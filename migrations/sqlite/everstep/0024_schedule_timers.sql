-- When each schedule fires next, which only code can tell. Engines write it for the view of timers.
CREATE TABLE IF NOT EXISTS schedule_timers (
  schedule_id TEXT NOT NULL PRIMARY KEY
    REFERENCES workflow_schedules (schedule_id) ON UPDATE CASCADE ON DELETE CASCADE,
  -- The time of the occurrence, which is part of its workflow's ID, and that time with the jitter.
  due_at BIGINT NOT NULL,
  fire_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);

DROP VIEW IF EXISTS history_timers;
CREATE VIEW history_timers AS
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
