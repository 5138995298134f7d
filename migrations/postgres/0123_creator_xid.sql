-- The token of the call that created the workflow. Unlike owner_xid it never changes.
ALTER TABLE {schema}.workflow_status ADD COLUMN IF NOT EXISTS creator_xid TEXT;
