-- Limits that hold for each partition of a queue.
ALTER TABLE {schema}.queues
  ADD COLUMN partition_concurrency INTEGER,
  ADD COLUMN partition_worker_concurrency INTEGER,
  ADD COLUMN partition_rate_limit_max INTEGER,
  ADD COLUMN partition_rate_limit_period_sec DOUBLE PRECISION;
