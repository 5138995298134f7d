-- Every value that an event has had, by the step that set it, so that a fork can take over the events as they
-- were at its first step. For the same reason a stream value remembers the step that wrote it.
CREATE TABLE IF NOT EXISTS {schema}.workflow_events_history (
  workflow_uuid TEXT NOT NULL
    REFERENCES {schema}.workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  function_id INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (workflow_uuid, function_id, key)
);

ALTER TABLE {schema}.streams ADD COLUMN IF NOT EXISTS function_id INTEGER NOT NULL DEFAULT 0;
