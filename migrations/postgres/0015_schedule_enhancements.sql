-- A schedule knows when it fired last, whether to make up for missed times, and in which time zone it counts.
ALTER TABLE {schema}.workflow_schedules
  ADD COLUMN IF NOT EXISTS last_fired_at TEXT,
  ADD COLUMN IF NOT EXISTS automatic_backfill BOOLEAN NOT NULL DEFAULT FALSE,
  ADD COLUMN IF NOT EXISTS cron_timezone TEXT;
