-- A queue belongs to the application it names.
ALTER TABLE {schema}.queues ADD COLUMN IF NOT EXISTS application_name TEXT;
