-- The token of the call that created the workflow. Unlike owner_xid it never changes.
ALTER TABLE workflow_status ADD COLUMN creator_xid TEXT;
