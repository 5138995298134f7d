-- A partitioned queue keeps its limits for each partition key apart.
ALTER TABLE workflow_status ADD COLUMN queue_partition_key TEXT;
