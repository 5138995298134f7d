-- Queues that are kept in the database, so that their limits can be changed while workers run.
CREATE TABLE IF NOT EXISTS queues (
  queue_id TEXT NOT NULL PRIMARY KEY DEFAULT (
    lower(hex(randomblob(4))) || '-' || lower(hex(randomblob(2))) || '-4' || substr(lower(hex(randomblob(2))), 2)
    || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(lower(hex(randomblob(2))), 2)
    || '-' || lower(hex(randomblob(6)))
  ),
  name TEXT NOT NULL UNIQUE,
  concurrency INTEGER,
  worker_concurrency INTEGER,
  rate_limit_max INTEGER,
  rate_limit_period_sec REAL,
  priority_enabled BOOLEAN NOT NULL DEFAULT FALSE,
  partition_queue BOOLEAN NOT NULL DEFAULT FALSE,
  polling_interval_sec REAL NOT NULL DEFAULT 1.0,
  created_at BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  updated_at BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
);
