-- Users see parked workflows as running ones, in lists too. A million of them must not hide a few that are delayed.
CREATE INDEX IF NOT EXISTS idx_workflow_status_listing_state
  ON workflow_status (CASE WHEN status = 'DELAYED' AND owner_xid LIKE '%.%' THEN 'PARKED' ELSE status END, created_at)
  WHERE CASE WHEN status IN ('ENQUEUED', 'DELAYED') THEN TRUE ELSE FALSE END;
DROP INDEX IF EXISTS idx_workflow_status_listing_waiting;
