-- What only Everstep knows of a schedule, and a counter by which processes see that schedules have changed.
CREATE TABLE IF NOT EXISTS {schema}.schedule_settings (
  schedule_id TEXT PRIMARY KEY,
  overlap TEXT NOT NULL,
  jitter_ms BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS {schema}.change_counters (
  topic TEXT PRIMARY KEY,
  changes BIGINT NOT NULL
);
