-- Tells of a workflow, without a search, whether any fork was ever made from it.
ALTER TABLE workflow_status ADD COLUMN was_forked_from BOOLEAN NOT NULL DEFAULT FALSE;
