-- Input and outcome in tables of their own, which can be kept or deleted apart from the workflow. Everstep
-- writes workflow_status and reads these first, for other libraries write here.
CREATE TABLE IF NOT EXISTS {schema}.workflow_input (
  workflow_uuid TEXT PRIMARY KEY,
  inputs TEXT,
  retention_timestamp BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT
);

CREATE INDEX IF NOT EXISTS idx_workflow_input_retention ON {schema}.workflow_input (retention_timestamp);

CREATE TABLE IF NOT EXISTS {schema}.workflow_output (
  workflow_uuid TEXT PRIMARY KEY,
  output TEXT,
  error TEXT,
  retention_timestamp BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT
);

CREATE INDEX IF NOT EXISTS idx_workflow_output_retention ON {schema}.workflow_output (retention_timestamp);
