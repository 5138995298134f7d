-- online
-- Figures of steps are counted by the time of their completion, which is also the order in which they are stored: a
-- block-range index costs next to nothing, the ordered one a write for each step.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_operation_outputs_completed_at
  ON {schema}.operation_outputs USING brin (completed_at_epoch_ms) WITH (autosummarize = on);
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_operation_outputs_completed_at_function_name_v2;
-- Checkpoints are deleted with their workflow. Those of databases without the foreign key are found by their primary key.
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_operation_outputs_retention;
