-- What only Everstep knows of a schedule, and a counter by which processes see that schedules have changed.
CREATE TABLE IF NOT EXISTS schedule_settings (
  schedule_id TEXT NOT NULL PRIMARY KEY,
  overlap TEXT NOT NULL,
  jitter_ms BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS change_counters (
  topic TEXT NOT NULL PRIMARY KEY,
  changes BIGINT NOT NULL
);
