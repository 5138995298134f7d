-- A version belongs to the application it names.
ALTER TABLE {schema}.application_versions ADD COLUMN IF NOT EXISTS application_name TEXT;
