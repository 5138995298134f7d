-- Brings the tables to the state that all languages share at version 100. Below 100 every language has numbers
-- of its own, so a database below 100 that another library has left says little by its number: everything added
-- since the first tables is stated again here, and every statement does nothing where its work is done (the
-- runner leaves out an ADD COLUMN whose column exists). The claims get partial indexes that hold only what is in
-- flight; the indexes they replace go.
ALTER TABLE workflow_status ADD COLUMN queue_partition_key TEXT;
ALTER TABLE workflow_status ADD COLUMN forked_from TEXT;
ALTER TABLE workflow_status ADD COLUMN owner_xid TEXT;
ALTER TABLE workflow_status ADD COLUMN parent_workflow_id TEXT;
ALTER TABLE workflow_status ADD COLUMN serialization TEXT;
ALTER TABLE workflow_status ADD COLUMN delay_until_epoch_ms BIGINT;
ALTER TABLE workflow_status ADD COLUMN was_forked_from BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE workflow_status ADD COLUMN rate_limited BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE workflow_status ADD COLUMN completed_at BIGINT;
ALTER TABLE workflow_status ADD COLUMN attributes TEXT;
ALTER TABLE workflow_status ADD COLUMN schedule_name TEXT;
ALTER TABLE workflow_status ADD COLUMN debounce_deadline_epoch_ms BIGINT;
ALTER TABLE workflow_status ADD COLUMN is_debounced BOOLEAN NOT NULL DEFAULT FALSE;

ALTER TABLE operation_outputs ADD COLUMN started_at_epoch_ms BIGINT;
ALTER TABLE operation_outputs ADD COLUMN completed_at_epoch_ms BIGINT;
ALTER TABLE operation_outputs ADD COLUMN serialization TEXT;

ALTER TABLE notifications ADD COLUMN serialization TEXT;
ALTER TABLE notifications ADD COLUMN consumed BOOLEAN NOT NULL DEFAULT FALSE;

ALTER TABLE workflow_events ADD COLUMN serialization TEXT;

ALTER TABLE streams ADD COLUMN function_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE streams ADD COLUMN serialization TEXT;

CREATE TABLE IF NOT EXISTS workflow_events_history (
  workflow_uuid TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  function_id INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (workflow_uuid, function_id, key)
);

ALTER TABLE workflow_events_history ADD COLUMN serialization TEXT;

CREATE TABLE IF NOT EXISTS workflow_schedules (
  schedule_id TEXT NOT NULL PRIMARY KEY,
  schedule_name TEXT NOT NULL UNIQUE,
  workflow_name TEXT NOT NULL,
  workflow_class_name TEXT,
  schedule TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'ACTIVE',
  context TEXT NOT NULL
);

ALTER TABLE workflow_schedules ADD COLUMN last_fired_at TEXT;
ALTER TABLE workflow_schedules ADD COLUMN automatic_backfill BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE workflow_schedules ADD COLUMN cron_timezone TEXT;
ALTER TABLE workflow_schedules ADD COLUMN queue_name TEXT;

CREATE TABLE IF NOT EXISTS application_versions (
  version_id TEXT NOT NULL PRIMARY KEY,
  version_name TEXT NOT NULL UNIQUE,
  version_timestamp BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  created_at BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
);

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

-- These two may still hold every workflow, in a database that another library has left.
DROP INDEX IF EXISTS idx_workflow_status_forked_from;
CREATE INDEX IF NOT EXISTS idx_workflow_status_forked_from
  ON workflow_status (forked_from)
  WHERE forked_from IS NOT NULL;
DROP INDEX IF EXISTS idx_workflow_status_parent_workflow_id;
CREATE INDEX IF NOT EXISTS idx_workflow_status_parent_workflow_id
  ON workflow_status (parent_workflow_id)
  WHERE parent_workflow_id IS NOT NULL;

CREATE INDEX IF NOT EXISTS idx_workflow_status_delayed
  ON workflow_status (delay_until_epoch_ms)
  WHERE status = 'DELAYED';
CREATE INDEX IF NOT EXISTS idx_workflow_status_pending
  ON workflow_status (created_at)
  WHERE status = 'PENDING';
CREATE INDEX IF NOT EXISTS idx_workflow_status_failed
  ON workflow_status (status, created_at)
  WHERE status IN ('ERROR', 'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED');
CREATE INDEX IF NOT EXISTS idx_workflow_status_in_flight
  ON workflow_status (queue_name, status, priority, created_at)
  WHERE status IN ('ENQUEUED', 'PENDING');
CREATE INDEX IF NOT EXISTS idx_workflow_status_partition_dequeue_v2
  ON workflow_status (queue_name, status, queue_partition_key, priority, created_at, workflow_uuid)
  WHERE status IN ('ENQUEUED', 'PENDING') AND queue_partition_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_workflow_status_rate_limited
  ON workflow_status (queue_name, started_at_epoch_ms)
  WHERE rate_limited = TRUE;
CREATE INDEX IF NOT EXISTS idx_workflow_status_started_at
  ON workflow_status (started_at_epoch_ms)
  WHERE started_at_epoch_ms IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_workflow_status_completed_at
  ON workflow_status (completed_at)
  WHERE completed_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_workflow_status_schedule_name
  ON workflow_status (schedule_name)
  WHERE schedule_name IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_operation_outputs_completed_at_function_name
  ON operation_outputs (completed_at_epoch_ms, function_name);

CREATE UNIQUE INDEX IF NOT EXISTS uq_workflow_status_dedup_id
  ON workflow_status (queue_name, deduplication_id)
  WHERE deduplication_id IS NOT NULL;
DROP INDEX IF EXISTS uq_workflow_status_queue_name_dedup_id;

DROP INDEX IF EXISTS workflow_status_executor_id_index;
DROP INDEX IF EXISTS workflow_status_status_index;
DROP INDEX IF EXISTS idx_workflow_status_queue_status_started;
DROP INDEX IF EXISTS idx_workflow_status_partition_dequeue;
