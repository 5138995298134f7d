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
