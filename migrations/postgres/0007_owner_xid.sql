-- The fencing token of the run that owns the workflow.
ALTER TABLE {schema}.workflow_status ADD COLUMN IF NOT EXISTS owner_xid TEXT;
