-- online
-- One index of running workflows instead of two. They are few, so those who look for all of them sort what they find: an index
-- in the order of creation cost each claim and each start a write, and the removal of entries that had died.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_running
  ON {schema}.workflow_status (owner_xid COLLATE "C")
  WHERE status = 'PENDING';
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_workflow_status_owner;
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_workflow_status_pending;
