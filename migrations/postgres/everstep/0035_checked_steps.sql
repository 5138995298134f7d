-- A transaction in the system database writes its checkpoint over a connection of the application. That statement has locked
-- the workflow's row, and names the workflow in everstep.checked: the trigger would look it up once more, which took two
-- thirds of the statement's time.
SET LOCAL lock_timeout = '3s';

CREATE OR REPLACE TRIGGER everstep_step_checked
AFTER INSERT OR UPDATE OF workflow_uuid ON {schema}.operation_outputs
FOR EACH ROW WHEN (
  current_setting('everstep.quiet', TRUE) IS DISTINCT FROM 'on'
  AND current_setting('everstep.checked', TRUE) IS DISTINCT FROM NEW.workflow_uuid
)
EXECUTE FUNCTION {schema}.everstep_check_step();
