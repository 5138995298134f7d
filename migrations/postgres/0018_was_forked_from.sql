-- Tells of a workflow, without a search, whether any fork was ever made from it.
ALTER TABLE {schema}.workflow_status ADD COLUMN IF NOT EXISTS was_forked_from BOOLEAN NOT NULL DEFAULT FALSE;
