-- A received message remembers the step that received it.
ALTER TABLE notifications ADD COLUMN consumed_by_function_id INTEGER;
