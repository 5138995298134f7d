-- A checkpoint tells when its step started and when it completed.
ALTER TABLE {schema}.operation_outputs
  ADD COLUMN IF NOT EXISTS started_at_epoch_ms BIGINT,
  ADD COLUMN IF NOT EXISTS completed_at_epoch_ms BIGINT;
