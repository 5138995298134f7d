-- A received message is marked, not deleted, so that it can be inspected later.
ALTER TABLE {schema}.notifications ADD COLUMN IF NOT EXISTS consumed BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX IF NOT EXISTS idx_notifications ON {schema}.notifications (destination_uuid, topic);
