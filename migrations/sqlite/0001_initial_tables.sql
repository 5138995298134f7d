-- The first tables: workflows and what hangs on them. A row of workflow_status is one workflow; the other
-- tables hold its checkpoints, messages, events and stream values and are deleted with it. event_dispatch_kv
-- is the memory of event receivers and belongs to no workflow.
CREATE TABLE IF NOT EXISTS workflow_status (
  workflow_uuid TEXT NOT NULL PRIMARY KEY,
  status TEXT,
  name TEXT,
  authenticated_user TEXT,
  assumed_role TEXT,
  authenticated_roles TEXT,
  request TEXT,
  inputs TEXT,
  output TEXT,
  error TEXT,
  executor_id TEXT,
  created_at BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  updated_at BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  application_version TEXT,
  application_id TEXT,
  class_name VARCHAR(255) DEFAULT NULL,
  config_name VARCHAR(255) DEFAULT NULL,
  recovery_attempts BIGINT DEFAULT 0,
  queue_name TEXT,
  workflow_timeout_ms BIGINT,
  workflow_deadline_epoch_ms BIGINT,
  started_at_epoch_ms BIGINT,
  deduplication_id TEXT,
  priority INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX IF NOT EXISTS workflow_status_created_at_index ON workflow_status (created_at);
CREATE INDEX IF NOT EXISTS workflow_status_executor_id_index ON workflow_status (executor_id);
CREATE INDEX IF NOT EXISTS workflow_status_status_index ON workflow_status (status);

-- An index and not a constraint of the table, because SQLite cannot drop a constraint.
CREATE UNIQUE INDEX IF NOT EXISTS uq_workflow_status_queue_name_dedup_id
  ON workflow_status (queue_name, deduplication_id);

CREATE TABLE IF NOT EXISTS operation_outputs (
  workflow_uuid TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  function_id INTEGER NOT NULL,
  function_name TEXT NOT NULL DEFAULT '',
  output TEXT,
  error TEXT,
  child_workflow_id TEXT,
  PRIMARY KEY (workflow_uuid, function_id)
);

CREATE TABLE IF NOT EXISTS notifications (
  message_uuid TEXT NOT NULL PRIMARY KEY DEFAULT (
    lower(hex(randomblob(4))) || '-' || lower(hex(randomblob(2))) || '-4' || substr(lower(hex(randomblob(2))), 2)
    || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(lower(hex(randomblob(2))), 2)
    || '-' || lower(hex(randomblob(6)))
  ),
  destination_uuid TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  topic TEXT,
  message TEXT NOT NULL,
  created_at_epoch_ms BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
);

CREATE INDEX IF NOT EXISTS idx_workflow_topic ON notifications (destination_uuid, topic);

CREATE TABLE IF NOT EXISTS workflow_events (
  workflow_uuid TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (workflow_uuid, key)
);

CREATE TABLE IF NOT EXISTS streams (
  workflow_uuid TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  "offset" INTEGER NOT NULL,
  PRIMARY KEY (workflow_uuid, key, "offset")
);

CREATE TABLE IF NOT EXISTS event_dispatch_kv (
  service_name TEXT NOT NULL,
  workflow_fn_name TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT,
  update_seq NUMERIC(38, 0),
  update_time NUMERIC(38, 15),
  PRIMARY KEY (service_name, workflow_fn_name, key)
);
