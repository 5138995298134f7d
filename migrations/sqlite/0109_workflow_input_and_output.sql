-- Input and outcome in tables of their own, which can be kept or deleted apart from the workflow. Everstep
-- writes workflow_status and reads these first, for other libraries write here.
CREATE TABLE workflow_input (
  workflow_uuid TEXT NOT NULL PRIMARY KEY,
  inputs TEXT,
  retention_timestamp BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
);

CREATE INDEX idx_workflow_input_retention ON workflow_input (retention_timestamp);

CREATE TABLE workflow_output (
  workflow_uuid TEXT NOT NULL PRIMARY KEY,
  output TEXT,
  error TEXT,
  retention_timestamp BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
);

CREATE INDEX idx_workflow_output_retention ON workflow_output (retention_timestamp);
