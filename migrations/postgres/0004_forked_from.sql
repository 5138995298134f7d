-- A fork remembers the workflow it was made from, and the forks of a workflow can be found.
ALTER TABLE {schema}.workflow_status ADD COLUMN IF NOT EXISTS forked_from TEXT;
CREATE INDEX IF NOT EXISTS idx_workflow_status_forked_from ON {schema}.workflow_status (forked_from);
