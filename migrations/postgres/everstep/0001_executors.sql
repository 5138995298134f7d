-- The engines that are or were running: one row for each launch. An engine prolongs its lease by the database's
-- clock; when the lease has ended, any other engine takes over its workflows.
CREATE TABLE IF NOT EXISTS {schema}.executors (
  incarnation_id TEXT PRIMARY KEY,
  executor_id TEXT NOT NULL,
  application_name TEXT,
  application_version TEXT,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started_at BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT,
  heartbeat_at BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT,
  lease_until_epoch_ms BIGINT NOT NULL,
  metadata TEXT
);

CREATE INDEX IF NOT EXISTS idx_executors_lease_until ON {schema}.executors (lease_until_epoch_ms);
CREATE INDEX IF NOT EXISTS idx_executors_executor_id ON {schema}.executors (executor_id);
