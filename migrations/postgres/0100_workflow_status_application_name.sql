-- Several applications can share one database: a workflow belongs to the application it names. NULL is
-- everybody's.
ALTER TABLE {schema}.workflow_status ADD COLUMN IF NOT EXISTS application_name TEXT;
