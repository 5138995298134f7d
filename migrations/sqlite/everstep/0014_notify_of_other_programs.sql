-- Engines notice the commits of other processes by themselves. Schedules are reread only if this counter has changed, which
-- programs other than Everstep do not know.
CREATE TRIGGER IF NOT EXISTS everstep_schedule_inserted AFTER INSERT ON workflow_schedules
BEGIN
  INSERT INTO change_counters (topic, changes) VALUES ('schedules', 1)
  ON CONFLICT (topic) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER IF NOT EXISTS everstep_schedule_deleted AFTER DELETE ON workflow_schedules
BEGIN
  INSERT INTO change_counters (topic, changes) VALUES ('schedules', 1)
  ON CONFLICT (topic) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER IF NOT EXISTS everstep_schedule_updated AFTER UPDATE OF
  schedule_id, schedule_name, workflow_name, workflow_class_name, schedule, status, context, automatic_backfill,
  cron_timezone, queue_name, application_name
ON workflow_schedules
BEGIN
  INSERT INTO change_counters (topic, changes) VALUES ('schedules', 1)
  ON CONFLICT (topic) DO UPDATE SET changes = changes + 1;
END;
