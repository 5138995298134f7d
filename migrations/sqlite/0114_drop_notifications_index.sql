-- idx_workflow_topic has the same columns.
DROP INDEX IF EXISTS idx_notifications;
