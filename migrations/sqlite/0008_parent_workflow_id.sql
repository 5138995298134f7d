-- A child workflow remembers its parent, and the children of a workflow can be found.
ALTER TABLE workflow_status ADD COLUMN parent_workflow_id TEXT;
CREATE INDEX IF NOT EXISTS idx_workflow_status_parent_workflow_id ON workflow_status (parent_workflow_id);
