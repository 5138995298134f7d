-- The counterpart of the Postgres index of that name. That one carries application_name besides; SQLite has no
-- INCLUDE.
CREATE INDEX IF NOT EXISTS idx_workflow_status_partition_dequeue_v3
  ON workflow_status (queue_name, status, queue_partition_key, priority, created_at, workflow_uuid)
  WHERE status IN ('ENQUEUED', 'PENDING') AND queue_partition_key IS NOT NULL;
