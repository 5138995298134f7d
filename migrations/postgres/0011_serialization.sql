-- Every stored value names the format it is written in. NULL means the application's own serializer.
ALTER TABLE {schema}.workflow_status ADD COLUMN IF NOT EXISTS serialization TEXT;
ALTER TABLE {schema}.operation_outputs ADD COLUMN IF NOT EXISTS serialization TEXT;
ALTER TABLE {schema}.notifications ADD COLUMN IF NOT EXISTS serialization TEXT;
ALTER TABLE {schema}.workflow_events ADD COLUMN IF NOT EXISTS serialization TEXT;
ALTER TABLE {schema}.workflow_events_history ADD COLUMN IF NOT EXISTS serialization TEXT;
ALTER TABLE {schema}.streams ADD COLUMN IF NOT EXISTS serialization TEXT;
