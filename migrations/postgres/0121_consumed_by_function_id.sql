-- A received message remembers the step that received it.
ALTER TABLE {schema}.notifications ADD COLUMN IF NOT EXISTS consumed_by_function_id INTEGER;
