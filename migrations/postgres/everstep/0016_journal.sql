-- The journal: what happened to workflows and is not, or no longer, in the other tables. Rows are only ever added, and go
-- with their workflow. Triggers add those about changes of state, whichever program makes them; runs add the others.
CREATE TABLE IF NOT EXISTS {schema}.journal (
  workflow_id TEXT NOT NULL
    REFERENCES {schema}.workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  seq BIGINT GENERATED ALWAYS AS IDENTITY,
  at BIGINT NOT NULL DEFAULT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT,
  -- Readers that follow the journal wait until no older transaction can still add a row.
  xid XID8 NOT NULL DEFAULT pg_current_xact_id(),
  event_type TEXT NOT NULL,
  step INTEGER,
  attempt INTEGER,
  executor TEXT,
  actor TEXT,
  details JSONB,
  -- Tells a row that is written again from a new one, and a stored event from the same one in the other tables.
  key TEXT,
  PRIMARY KEY (workflow_id, seq)
);

CREATE INDEX IF NOT EXISTS idx_journal_at ON {schema}.journal (at);
CREATE INDEX IF NOT EXISTS idx_journal_xid ON {schema}.journal (xid, seq);
CREATE UNIQUE INDEX IF NOT EXISTS uq_journal_key ON {schema}.journal (workflow_id, key) WHERE key IS NOT NULL;

CREATE OR REPLACE FUNCTION {schema}.everstep_guard_journal() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
  IF TG_OP = 'DELETE' THEN
    IF current_setting('everstep.prune', TRUE) = 'on'
      OR NOT EXISTS (SELECT 1 FROM {schema}.workflow_status AS w WHERE w.workflow_uuid = OLD.workflow_id) THEN
      RETURN OLD;
    END IF;
  ELSIF TG_OP = 'UPDATE' THEN
    -- A workflow was given another ID.
    IF OLD.workflow_id <> NEW.workflow_id AND OLD.seq = NEW.seq AND OLD.at = NEW.at AND OLD.event_type = NEW.event_type
      AND OLD.details IS NOT DISTINCT FROM NEW.details AND OLD.actor IS NOT DISTINCT FROM NEW.actor THEN
      RETURN NEW;
    END IF;
  END IF;
  RAISE EXCEPTION 'The history of workflows is append-only.' USING ERRCODE = 'object_not_in_prerequisite_state';
END;
$body$;

-- Creating a trigger waits for the transactions that write to the table, and new ones wait behind it. Give up and retry instead.
SET LOCAL lock_timeout = '3s';

CREATE OR REPLACE TRIGGER everstep_journal_kept
BEFORE UPDATE OR DELETE ON {schema}.journal
FOR EACH ROW EXECUTE FUNCTION {schema}.everstep_guard_journal();

CREATE OR REPLACE TRIGGER everstep_journal_not_truncated
BEFORE TRUNCATE ON {schema}.journal
FOR EACH STATEMENT EXECUTE FUNCTION {schema}.everstep_guard_journal();

-- With the rights of its owner: another program's role need not know the journal.
CREATE OR REPLACE FUNCTION {schema}.everstep_journal_change() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  -- What the caller says about the change: its source, a reason and an actor.
  note JSONB := NULLIF(current_setting('everstep.change', TRUE), '')::JSONB;
  now_ms BIGINT := FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT;
  changed_at BIGINT := CASE WHEN NEW.updated_at <> OLD.updated_at THEN NEW.updated_at ELSE now_ms END;
  source TEXT := note ->> 'source';
  kind TEXT;
  facts JSONB;
BEGIN
  IF NEW.status = 'CANCELLED' AND OLD.status IS DISTINCT FROM 'CANCELLED' THEN
    source := COALESCE(source, CASE WHEN NEW.workflow_deadline_epoch_ms <= changed_at THEN 'deadline' ELSE 'api' END);
    kind := CASE WHEN source = 'deadline' THEN 'WorkflowTimedOut' ELSE 'WorkflowCancelRequested' END;
    facts := jsonb_build_object('from_status', OLD.status, 'queue', OLD.queue_name, 'started_at', OLD.started_at_epoch_ms);
    IF source = 'deadline' THEN
      facts := facts || jsonb_build_object(
        'deadline', NEW.workflow_deadline_epoch_ms, 'timeout_seconds', NEW.workflow_timeout_ms / 1000.0);
    END IF;
  ELSIF NEW.status = 'MAX_RECOVERY_ATTEMPTS_EXCEEDED' AND OLD.status IS DISTINCT FROM NEW.status THEN
    kind := 'WorkflowDeadLettered';
    facts := jsonb_build_object('attempts', OLD.recovery_attempts, 'queue', OLD.queue_name);
  ELSIF source = 'resume' OR source = 'rewind' OR OLD.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING') THEN
    source := COALESCE(source, CASE WHEN OLD.status IN ('SUCCESS', 'ERROR') THEN 'rewind' ELSE 'resume' END);
    kind := CASE WHEN source = 'rewind' THEN 'WorkflowRewound' ELSE 'WorkflowResumed' END;
    facts := jsonb_build_object('from_status', OLD.status, 'queue', NEW.queue_name, 'attempts', OLD.recovery_attempts,
      'completed_at', OLD.completed_at, 'error', OLD.error, 'start_step', note -> 'startStep');
  ELSIF OLD.status = 'PENDING' AND NEW.status = 'DELAYED' THEN
    kind := 'WorkflowTaskYielded';
    facts := jsonb_build_object('until', NEW.delay_until_epoch_ms, 'started_at', OLD.started_at_epoch_ms);
  ELSIF OLD.status = 'PENDING' AND NEW.status = 'ENQUEUED' THEN
    kind := 'AttemptLost';
    source := COALESCE(source, 'recovery');
    facts := jsonb_build_object('started_at', OLD.started_at_epoch_ms, 'version', OLD.application_version);
  ELSIF OLD.delay_until_epoch_ms IS DISTINCT FROM NEW.delay_until_epoch_ms THEN
    kind := 'DelayChanged';
    facts := jsonb_build_object('from', OLD.delay_until_epoch_ms, 'to', NEW.delay_until_epoch_ms);
  ELSE
    kind := 'PriorityChanged';
    facts := jsonb_build_object('from', OLD.priority, 'to', NEW.priority);
  END IF;
  INSERT INTO {schema}.journal (workflow_id, at, event_type, attempt, executor, actor, details)
  VALUES (
    NEW.workflow_uuid, changed_at, kind,
    CASE WHEN OLD.status = 'PENDING' THEN OLD.recovery_attempts::INTEGER END,
    CASE WHEN OLD.status = 'PENDING' THEN OLD.executor_id END,
    note ->> 'actor',
    jsonb_strip_nulls(facts || jsonb_build_object('source', source, 'reason', note ->> 'reason')));
  RETURN NULL;
END;
$body$;

-- The condition is evaluated before anything is called or queued. A workflow that just runs does not meet it.
CREATE OR REPLACE TRIGGER everstep_workflow_journaled
AFTER UPDATE ON {schema}.workflow_status
FOR EACH ROW
WHEN (
  (OLD.status IS DISTINCT FROM NEW.status AND (
    NEW.status IN ('CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED')
    OR (OLD.status = 'PENDING' AND NEW.status IN ('ENQUEUED', 'DELAYED'))
    OR (OLD.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING') AND NEW.status IN ('ENQUEUED', 'DELAYED', 'PENDING'))))
  OR (OLD.status IN ('ENQUEUED', 'DELAYED') AND NEW.status IN ('ENQUEUED', 'DELAYED')
    AND OLD.delay_until_epoch_ms IS DISTINCT FROM NEW.delay_until_epoch_ms)
  OR (OLD.priority <> NEW.priority AND NEW.status IN ('ENQUEUED', 'DELAYED', 'PENDING'))
)
EXECUTE FUNCTION {schema}.everstep_journal_change();

CREATE OR REPLACE FUNCTION {schema}.everstep_journal_fork() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  note JSONB := NULLIF(current_setting('everstep.change', TRUE), '')::JSONB;
BEGIN
  INSERT INTO {schema}.journal (workflow_id, at, event_type, actor, details)
  SELECT w.workflow_uuid, NEW.created_at, 'WorkflowForked', note ->> 'actor', jsonb_strip_nulls(jsonb_build_object(
    'new_id', NEW.workflow_uuid, 'version', NEW.application_version, 'reason', note ->> 'reason'))
  FROM {schema}.workflow_status AS w
  WHERE w.workflow_uuid = NEW.forked_from;
  RETURN NULL;
END;
$body$;

CREATE OR REPLACE TRIGGER everstep_fork_journaled
AFTER INSERT ON {schema}.workflow_status
FOR EACH ROW
WHEN (NEW.forked_from IS NOT NULL)
EXECUTE FUNCTION {schema}.everstep_journal_fork();
