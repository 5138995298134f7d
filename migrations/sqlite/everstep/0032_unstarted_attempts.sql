-- A workflow that was claimed before there was a slot for it, and goes back to its queue before it has started, has lost no
-- attempt.
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
    IIF(OLD.status = 'PENDING', OLD.recovery_attempts, NULL), IIF(OLD.status = 'PENDING', OLD.executor_id, NULL), c.actor,
    -- A merge with nothing removes the members that are null.
    json_patch('{}', json_patch(
      CASE
        WHEN k.kind = 'WorkflowTimedOut' THEN json_object(
          'from_status', OLD.status, 'queue', OLD.queue_name, 'started_at', OLD.started_at_epoch_ms,
          'deadline', NEW.workflow_deadline_epoch_ms, 'timeout_seconds', NEW.workflow_timeout_ms / 1000.0)
        WHEN k.kind = 'WorkflowCancelRequested' THEN json_object(
          'from_status', OLD.status, 'queue', OLD.queue_name, 'started_at', OLD.started_at_epoch_ms)
        WHEN k.kind = 'WorkflowDeadLettered' THEN json_object('attempts', OLD.recovery_attempts, 'queue', OLD.queue_name)
        WHEN k.kind IN ('WorkflowResumed', 'WorkflowRewound') THEN json_object(
          'from_status', OLD.status, 'queue', NEW.queue_name, 'attempts', OLD.recovery_attempts,
          'completed_at', OLD.completed_at, 'error', OLD.error, 'start_step', c.start_step)
        WHEN k.kind = 'WorkflowTaskYielded' THEN json_object(
          'until', NEW.delay_until_epoch_ms, 'started_at', OLD.started_at_epoch_ms)
        WHEN k.kind = 'AttemptLost' THEN json_object(
          'started_at', OLD.started_at_epoch_ms, 'version', OLD.application_version)
        WHEN k.kind = 'DelayChanged' THEN json_object('from', OLD.delay_until_epoch_ms, 'to', NEW.delay_until_epoch_ms)
        ELSE json_object('from', OLD.priority, 'to', NEW.priority)
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
