-- A received message is marked, not deleted, so that it can be inspected later.
ALTER TABLE notifications ADD COLUMN consumed BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX IF NOT EXISTS idx_notifications ON notifications (destination_uuid, topic);
