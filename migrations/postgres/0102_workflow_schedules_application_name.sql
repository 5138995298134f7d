-- A schedule belongs to the application it names.
ALTER TABLE {schema}.workflow_schedules ADD COLUMN IF NOT EXISTS application_name TEXT;
