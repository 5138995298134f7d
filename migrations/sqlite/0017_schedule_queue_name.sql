-- The queue that a schedule's workflows go to. NULL means the internal queue.
ALTER TABLE workflow_schedules ADD COLUMN queue_name TEXT;
