-- online
-- Few workflows are children: the index need not hold the others.
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_workflow_status_parent_workflow_id;
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_parent_workflow_id
  ON {schema}.workflow_status (parent_workflow_id)
  WHERE parent_workflow_id IS NOT NULL;
