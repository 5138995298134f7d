-- A partitioned queue keeps its limits for each partition key apart.
ALTER TABLE {schema}.workflow_status ADD COLUMN IF NOT EXISTS queue_partition_key TEXT;
