-- Where the workflows are that retention has archived and deleted: the object of the archive that holds each.
CREATE TABLE IF NOT EXISTS {schema}.archived_workflows (
  workflow_uuid TEXT PRIMARY KEY,
  object_name TEXT NOT NULL,
  archived_at BIGINT NOT NULL
);
