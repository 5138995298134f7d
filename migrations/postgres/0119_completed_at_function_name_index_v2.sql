-- online
-- Metrics of one application read its name from the index.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_operation_outputs_completed_at_function_name_v2
  ON {schema}.operation_outputs (completed_at_epoch_ms, function_name)
  INCLUDE (application_name);
