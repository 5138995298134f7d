-- Queues that are kept in the database, so that their limits can be changed while workers run.
CREATE TABLE IF NOT EXISTS {schema}.queues (
  queue_id TEXT PRIMARY KEY DEFAULT gen_random_uuid()::TEXT,
  name TEXT NOT NULL UNIQUE,
  concurrency INTEGER,
  worker_concurrency INTEGER,
  rate_limit_max INTEGER,
  rate_limit_period_sec DOUBLE PRECISION,
  priority_enabled BOOLEAN NOT NULL DEFAULT FALSE,
  partition_queue BOOLEAN NOT NULL DEFAULT FALSE,
  polling_interval_sec DOUBLE PRECISION NOT NULL DEFAULT 1.0,
  created_at BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT,
  updated_at BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT
);
