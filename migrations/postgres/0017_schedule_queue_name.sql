-- The queue that a schedule's workflows go to. NULL means the internal queue.
ALTER TABLE {schema}.workflow_schedules ADD COLUMN IF NOT EXISTS queue_name TEXT;
