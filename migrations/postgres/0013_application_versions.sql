-- The versions of the application that have been launched. The latest is the one with the highest
-- version_timestamp, which an operator can move; created_at never changes.
CREATE TABLE IF NOT EXISTS {schema}.application_versions (
  version_id TEXT PRIMARY KEY,
  version_name TEXT NOT NULL UNIQUE,
  version_timestamp BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT,
  created_at BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT
);
