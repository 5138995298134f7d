-- The fencing token of the run that owns the workflow.
ALTER TABLE workflow_status ADD COLUMN owner_xid TEXT;
