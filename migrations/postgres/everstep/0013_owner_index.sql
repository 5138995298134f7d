-- online
-- The running workflows of an engine are found by its owner tokens, and the engines that own any by walking the index.
-- Tokens of other libraries have no dot.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_owner
  ON {schema}.workflow_status (owner_xid COLLATE "C")
  WHERE status = 'PENDING' AND owner_xid LIKE '%.%';
