-- Checkpoints are deleted with their workflow, and never looked up by age.
DROP INDEX IF EXISTS idx_operation_outputs_retention;
