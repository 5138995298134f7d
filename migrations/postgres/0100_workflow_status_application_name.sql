-- Several applications can share one database: a workflow belongs to the application it names. NULL is
-- everybody's.
ALTER TABLE {schema}.workflow_status ADD COLUMN application_name TEXT;
