-- One index of running workflows instead of two. They are few, so those who look for all of them sort what they find: an index
-- in the order of creation cost each claim and each start a write.
CREATE INDEX IF NOT EXISTS idx_workflow_status_running
  ON workflow_status (owner_xid)
  WHERE status = 'PENDING';
DROP INDEX IF EXISTS idx_workflow_status_owner;
DROP INDEX IF EXISTS idx_workflow_status_pending;
