-- online
-- The index for lists by queue is optional (`everstep index create queueName`). It cost each workflow of a queue three writes,
-- about a tenth of what the workflow costs the server in all.
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_workflow_status_listing_queue;
