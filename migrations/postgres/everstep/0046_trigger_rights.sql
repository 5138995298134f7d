-- Functions that run with the rights of their owner serve the triggers that call them, and nobody else. Anyone who may create
-- a temporary table could hang them on that, and so change workflows, checkpoints and the history without a right to: who may
-- not call them cannot, and where privileges were lost, as in a dump without them, they refuse any table but their own. They
-- look at nothing of the row before: a type of the caller's could bring a cast, which would run with the same rights.

CREATE OR REPLACE FUNCTION {schema}.everstep_journal_change() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  -- What the caller says about the change: its source, a reason and an actor.
  note JSONB := NULLIF(current_setting('everstep.change', TRUE), '')::JSONB;
  now_ms BIGINT := FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT;
  changed_at BIGINT;
  source TEXT := note ->> 'source';
  kind TEXT;
  facts JSONB;
BEGIN
  IF TG_RELID <> '{schema}.workflow_status'::REGCLASS THEN
    RAISE insufficient_privilege USING MESSAGE = 'only triggers of workflow_status may call this function';
  END IF;
  changed_at := CASE WHEN NEW.updated_at <> OLD.updated_at THEN NEW.updated_at ELSE now_ms END;
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
    CASE WHEN OLD.status = 'PENDING' THEN LEAST(GREATEST(OLD.recovery_attempts, 0), 2147483647)::INTEGER END,
    CASE WHEN OLD.status = 'PENDING' THEN OLD.executor_id END,
    note ->> 'actor',
    jsonb_strip_nulls(facts || jsonb_build_object('source', source, 'reason', note ->> 'reason')));
  RETURN NULL;
END;
$body$;

CREATE OR REPLACE FUNCTION {schema}.everstep_journal_fork() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  note JSONB := NULLIF(current_setting('everstep.change', TRUE), '')::JSONB;
BEGIN
  IF TG_RELID <> '{schema}.workflow_status'::REGCLASS THEN
    RAISE insufficient_privilege USING MESSAGE = 'only triggers of workflow_status may call this function';
  END IF;
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

CREATE OR REPLACE FUNCTION {schema}.everstep_journal_follow() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
BEGIN
  IF TG_RELID <> '{schema}.workflow_status'::REGCLASS THEN
    RAISE insufficient_privilege USING MESSAGE = 'only triggers of workflow_status may call this function';
  END IF;
  IF TG_OP = 'DELETE' THEN
    DELETE FROM {schema}.operation_outputs AS o WHERE o.workflow_uuid = OLD.workflow_uuid;
    DELETE FROM {schema}.journal AS j WHERE j.workflow_id = OLD.workflow_uuid AND j.event_type <> 'WorkflowDeleted';
  ELSIF TG_OP = 'UPDATE' THEN
    UPDATE {schema}.operation_outputs AS o SET workflow_uuid = NEW.workflow_uuid WHERE o.workflow_uuid = OLD.workflow_uuid;
    UPDATE {schema}.journal AS j SET workflow_id = NEW.workflow_uuid WHERE j.workflow_id = OLD.workflow_uuid;
  ELSIF TG_OP = 'TRUNCATE' THEN
    DELETE FROM {schema}.operation_outputs;
    DELETE FROM {schema}.journal;
  END IF;
  RETURN NULL;
END;
$body$;

CREATE OR REPLACE FUNCTION {schema}.everstep_check_step() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
BEGIN
  IF TG_RELID <> '{schema}.operation_outputs'::REGCLASS THEN
    RAISE insufficient_privilege USING MESSAGE = 'only triggers of operation_outputs may call this function';
  END IF;
  PERFORM 1 FROM {schema}.workflow_status AS w WHERE w.workflow_uuid = NEW.workflow_uuid FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE foreign_key_violation USING
      MESSAGE = format('workflow "%s" of a step does not exist', NEW.workflow_uuid),
      CONSTRAINT = 'operation_outputs_workflow_uuid_fkey';
  END IF;
  RETURN NULL;
END;
$body$;

CREATE OR REPLACE FUNCTION {schema}.everstep_end_waits() RETURNS TRIGGER
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
BEGIN
  IF TG_RELID <> '{schema}.workflow_status'::REGCLASS THEN
    RAISE insufficient_privilege USING MESSAGE = 'only triggers of workflow_status may call this function';
  END IF;
  DELETE FROM {schema}.parked_waits AS p WHERE p.workflow_uuid = NEW.workflow_uuid;
  RETURN NULL;
END;
$body$;

-- Anyone can change a setting, so it only says that a deletion is meant: who may make it is a matter of rights. No other
-- statement needs this one. A row moves to another ID with its workflow alone.
CREATE OR REPLACE FUNCTION {schema}.everstep_guard_journal() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  is_pruning BOOLEAN := COALESCE(current_setting('everstep.prune', TRUE), '') = 'on';
BEGIN
  IF TG_OP = 'DELETE' THEN
    IF is_pruning AND has_table_privilege('{schema}.journal', 'TRUNCATE')
      OR NOT EXISTS (SELECT 1 FROM {schema}.workflow_status AS w WHERE w.workflow_uuid = OLD.workflow_id) THEN
      RETURN OLD;
    END IF;
    IF is_pruning THEN
      RAISE insufficient_privilege USING MESSAGE = 'a role needs the right to TRUNCATE the journal to delete rows of it';
    END IF;
  ELSIF TG_OP = 'UPDATE' THEN
    IF to_jsonb(OLD) - 'workflow_id' = to_jsonb(NEW) - 'workflow_id'
      AND NOT EXISTS (SELECT 1 FROM {schema}.workflow_status AS w WHERE w.workflow_uuid = OLD.workflow_id)
      AND EXISTS (SELECT 1 FROM {schema}.workflow_status AS w WHERE w.workflow_uuid = NEW.workflow_id) THEN
      RETURN NEW;
    END IF;
  END IF;
  RAISE EXCEPTION 'The history of workflows is append-only.' USING ERRCODE = 'object_not_in_prerequisite_state';
END;
$body$;

REVOKE ALL ON FUNCTION {schema}.everstep_check_step() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_delete_execution() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_end_waits() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_guard_journal() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_journal_change() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_journal_follow() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_journal_fork() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_wake_at_commit() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_wake_event_readers() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_wake_receivers() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_wake_result_waiters() FROM PUBLIC;
-- if listen_notify
REVOKE ALL ON FUNCTION {schema}.everstep_notify_of_queues() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_notify_of_schedule() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.everstep_notify_of_workflow() FROM PUBLIC;
REVOKE ALL ON FUNCTION {schema}.notifications_function() FROM PUBLIC;
-- end if
