-- The index for lists by queue is optional (`everstep index create queueName`). It cost each workflow of a queue three writes.
DROP INDEX IF EXISTS idx_workflow_status_listing_queue;
