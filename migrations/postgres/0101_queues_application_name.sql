-- A queue belongs to the application it names.
ALTER TABLE {schema}.queues ADD COLUMN application_name TEXT;
