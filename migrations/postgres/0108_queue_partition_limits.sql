-- Limits that hold for each partition of a queue.
ALTER TABLE {schema}.queues
  ADD COLUMN IF NOT EXISTS partition_concurrency INTEGER,
  ADD COLUMN IF NOT EXISTS partition_worker_concurrency INTEGER,
  ADD COLUMN IF NOT EXISTS partition_rate_limit_max INTEGER,
  ADD COLUMN IF NOT EXISTS partition_rate_limit_period_sec DOUBLE PRECISION;
