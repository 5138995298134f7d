-- Every stored value names the format it is written in. NULL means the application's own serializer.
ALTER TABLE workflow_status ADD COLUMN serialization TEXT;
ALTER TABLE operation_outputs ADD COLUMN serialization TEXT;
ALTER TABLE notifications ADD COLUMN serialization TEXT;
ALTER TABLE workflow_events ADD COLUMN serialization TEXT;
ALTER TABLE workflow_events_history ADD COLUMN serialization TEXT;
ALTER TABLE streams ADD COLUMN serialization TEXT;
