-- The failed attempts of steps that are retried, so that the next process continues the count and the backoff.
CREATE TABLE IF NOT EXISTS {schema}.step_attempts (
  workflow_uuid TEXT NOT NULL
    REFERENCES {schema}.workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  function_id INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  retry_at_epoch_ms BIGINT NOT NULL,
  errors TEXT NOT NULL,
  PRIMARY KEY (workflow_uuid, function_id)
);
