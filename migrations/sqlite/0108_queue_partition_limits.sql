-- Limits that hold for each partition of a queue.
ALTER TABLE queues ADD COLUMN partition_concurrency INTEGER;
ALTER TABLE queues ADD COLUMN partition_worker_concurrency INTEGER;
ALTER TABLE queues ADD COLUMN partition_rate_limit_max INTEGER;
ALTER TABLE queues ADD COLUMN partition_rate_limit_period_sec REAL;
