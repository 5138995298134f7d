-- A checkpoint repeats the application of its workflow, so that it can be counted without a join.
ALTER TABLE operation_outputs ADD COLUMN application_name TEXT;
