-- For lists of workflows. Their conditions are written so that no other statement sees its own in them: on a table without
-- statistics, a claim would otherwise be read by them.
--
-- The newest workflows of a queue, however few and old they are.
CREATE INDEX IF NOT EXISTS idx_workflow_status_listing_queue
  ON workflow_status (queue_name, created_at)
  WHERE CASE WHEN queue_name IS NULL THEN FALSE ELSE TRUE END;
-- The newest workflows that wait. Those of other states have indexes, or are most of the table.
CREATE INDEX IF NOT EXISTS idx_workflow_status_listing_waiting
  ON workflow_status (status, created_at)
  WHERE CASE WHEN status IN ('ENQUEUED', 'DELAYED') THEN TRUE ELSE FALSE END;
