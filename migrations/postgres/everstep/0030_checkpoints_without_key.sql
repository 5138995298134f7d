-- The check of the foreign key took more than a third of the time of writing a checkpoint. Everstep locks the workflow's row
-- in the same statement anyway. The checkpoints of other programs are checked by a trigger instead, and triggers delete
-- checkpoints with their workflow and follow a change of its ID.
-- Dropping the key locks both tables, and all programs would wait behind it. Give up and retry instead.
SET LOCAL lock_timeout = '3s';

CREATE OR REPLACE FUNCTION {schema}.everstep_check_step() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
BEGIN
  PERFORM 1 FROM {schema}.workflow_status AS w WHERE w.workflow_uuid = NEW.workflow_uuid FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE foreign_key_violation USING
      MESSAGE = format('workflow "%s" of a step does not exist', NEW.workflow_uuid),
      CONSTRAINT = 'operation_outputs_workflow_uuid_fkey';
  END IF;
  RETURN NULL;
END;
$body$;

CREATE OR REPLACE TRIGGER everstep_step_checked
AFTER INSERT OR UPDATE OF workflow_uuid ON {schema}.operation_outputs
FOR EACH ROW WHEN (current_setting('everstep.quiet', TRUE) IS DISTINCT FROM 'on')
EXECUTE FUNCTION {schema}.everstep_check_step();

-- With the rights of its owner: another program's role need not know the journal.
CREATE OR REPLACE FUNCTION {schema}.everstep_journal_follow() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM {schema}.operation_outputs AS o WHERE o.workflow_uuid = OLD.workflow_uuid;
    DELETE FROM {schema}.journal AS j WHERE j.workflow_id = OLD.workflow_uuid AND j.event_type <> 'WorkflowDeleted';
  ELSIF TG_OP = 'UPDATE' THEN
    UPDATE {schema}.operation_outputs AS o SET workflow_uuid = NEW.workflow_uuid WHERE o.workflow_uuid = OLD.workflow_uuid;
    UPDATE {schema}.journal AS j SET workflow_id = NEW.workflow_uuid WHERE j.workflow_id = OLD.workflow_uuid;
  ELSE
    DELETE FROM {schema}.operation_outputs;
    DELETE FROM {schema}.journal;
  END IF;
  RETURN NULL;
END;
$body$;

-- The second is what DBOS for TypeScript called it.
ALTER TABLE {schema}.operation_outputs DROP CONSTRAINT IF EXISTS operation_outputs_workflow_uuid_fkey;
ALTER TABLE {schema}.operation_outputs DROP CONSTRAINT IF EXISTS operation_outputs_workflow_uuid_foreign;
