-- online
-- Retention finds old checkpoints by their time.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_operation_outputs_retention
  ON {schema}.operation_outputs (retention_timestamp);
