-- online
-- idx_workflow_topic has the same columns.
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_notifications;
