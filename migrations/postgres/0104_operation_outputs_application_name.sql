-- A checkpoint repeats the application of its workflow, so that it can be counted without a join.
ALTER TABLE {schema}.operation_outputs ADD COLUMN IF NOT EXISTS application_name TEXT;
