-- The journal: what happened to workflows and is not, or no longer, in the other tables. Rows are only ever added, and go
-- with their workflow. Triggers add those about changes of state, whichever program makes them; runs add the others.
CREATE TABLE IF NOT EXISTS journal (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  workflow_id TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  at BIGINT NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
  event_type TEXT NOT NULL,
  step INTEGER,
  attempt INTEGER,
  executor TEXT,
  actor TEXT,
  details TEXT,
  -- Tells a row that is written again from a new one, and a stored event from the same one in the other tables.
  key TEXT
);

CREATE INDEX IF NOT EXISTS idx_journal_workflow ON journal (workflow_id, seq);
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

CREATE TRIGGER IF NOT EXISTS everstep_workflow_journaled
AFTER UPDATE OF status, delay_until_epoch_ms, priority ON workflow_status
WHEN (OLD.status IS NOT NEW.status AND (
    NEW.status IN ('CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED')
    OR (OLD.status = 'PENDING' AND NEW.status IN ('ENQUEUED', 'DELAYED'))
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

CREATE TRIGGER IF NOT EXISTS everstep_fork_journaled AFTER INSERT ON workflow_status
WHEN NEW.forked_from IS NOT NULL
BEGIN
  INSERT INTO journal (workflow_id, at, event_type, actor, details)
  SELECT w.workflow_uuid, NEW.created_at, 'WorkflowForked', n.note ->> 'actor', json_patch('{}', json_object(
    'new_id', NEW.workflow_uuid, 'version', NEW.application_version, 'reason', n.note ->> 'reason'))
  FROM workflow_status AS w
  LEFT JOIN journal_notes AS n ON n.kind = 'change'
  WHERE w.workflow_uuid = NEW.forked_from;
END;
