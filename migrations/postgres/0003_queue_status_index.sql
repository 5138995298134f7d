-- Claims and rate limits look for a queue's workflows by state and start time.
CREATE INDEX IF NOT EXISTS idx_workflow_status_queue_status_started
  ON {schema}.workflow_status (queue_name, status, started_at_epoch_ms);
