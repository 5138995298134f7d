-- The counterpart of the Postgres index of that name. That one carries application_name besides; SQLite has no
-- INCLUDE.
CREATE INDEX IF NOT EXISTS idx_workflow_status_in_flight_v2
  ON workflow_status (queue_name, status, priority, created_at)
  WHERE status IN ('ENQUEUED', 'PENDING');
