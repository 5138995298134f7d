-- The time that the retention of a checkpoint counts from.
ALTER TABLE {schema}.operation_outputs
  ADD COLUMN IF NOT EXISTS retention_timestamp BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT;
