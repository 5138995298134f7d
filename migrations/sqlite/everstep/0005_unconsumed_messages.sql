-- The oldest message that was not received yet is found without passing all those that were.
CREATE INDEX IF NOT EXISTS idx_notifications_unconsumed
  ON notifications (destination_uuid, topic, created_at_epoch_ms, message_uuid)
  WHERE consumed = FALSE;
