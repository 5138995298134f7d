-- online
-- Few workflows are forks: the index need not hold the others.
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_workflow_status_forked_from;
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_forked_from
  ON {schema}.workflow_status (forked_from)
  WHERE forked_from IS NOT NULL;
