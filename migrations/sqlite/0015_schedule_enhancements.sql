-- A schedule knows when it fired last, whether to make up for missed times, and in which time zone it counts.
ALTER TABLE workflow_schedules ADD COLUMN last_fired_at TEXT;
ALTER TABLE workflow_schedules ADD COLUMN automatic_backfill BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE workflow_schedules ADD COLUMN cron_timezone TEXT;
