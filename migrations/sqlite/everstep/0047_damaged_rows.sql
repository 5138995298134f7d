-- SQLite stores any value in any column, but JSON cannot hold a blob. One row with a blob made each statement fail that cancels,
-- recovers or resumes it together with others, and no process could launch. One row of the journal that is no JSON failed all who
-- followed it.
DROP TRIGGER IF EXISTS everstep_workflow_journaled;

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

DROP TRIGGER IF EXISTS everstep_fork_journaled;
CREATE TRIGGER everstep_fork_journaled AFTER INSERT ON workflow_status
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

-- What each row says: that a workflow was started (0), that an attempt began (1), that a step did (2), and how it ended, or
-- another event (3).
DROP VIEW IF EXISTS journal_events;
CREATE VIEW journal_events AS
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
