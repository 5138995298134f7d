-- Few workflows are forks: the index need not hold the others.
DROP INDEX IF EXISTS idx_workflow_status_forked_from;
CREATE INDEX IF NOT EXISTS idx_workflow_status_forked_from
  ON workflow_status (forked_from)
  WHERE forked_from IS NOT NULL;
