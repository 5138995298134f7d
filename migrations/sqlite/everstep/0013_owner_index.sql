-- The running workflows of an engine are found by its owner tokens, and the engines that own any by walking the index.
-- Tokens of other libraries have no dot.
CREATE INDEX IF NOT EXISTS idx_workflow_status_owner
  ON workflow_status (owner_xid)
  WHERE status = 'PENDING' AND owner_xid LIKE '%.%';
