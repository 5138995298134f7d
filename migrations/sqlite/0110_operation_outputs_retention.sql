-- The time that the retention of a checkpoint counts from. SQLite adds no column whose default is computed, so
-- the table is made anew and the checkpoints are copied. No other table refers to it.
CREATE TABLE operation_outputs_new (
  workflow_uuid TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  function_id INTEGER NOT NULL,
  function_name TEXT NOT NULL DEFAULT '',
  output TEXT,
  error TEXT,
  child_workflow_id TEXT,
  started_at_epoch_ms BIGINT,
  completed_at_epoch_ms BIGINT,
  serialization TEXT,
  application_name TEXT,
  retention_timestamp BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  PRIMARY KEY (workflow_uuid, function_id)
);

INSERT INTO operation_outputs_new (
  workflow_uuid, function_id, function_name, output, error, child_workflow_id,
  started_at_epoch_ms, completed_at_epoch_ms, serialization, application_name
)
SELECT
  workflow_uuid, function_id, function_name, output, error, child_workflow_id,
  started_at_epoch_ms, completed_at_epoch_ms, serialization, application_name
FROM operation_outputs;

DROP TABLE operation_outputs;
ALTER TABLE operation_outputs_new RENAME TO operation_outputs;

CREATE INDEX idx_operation_outputs_completed_at_function_name
  ON operation_outputs (completed_at_epoch_ms, function_name);
