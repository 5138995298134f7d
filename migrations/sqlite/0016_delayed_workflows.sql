-- A workflow can be enqueued with a delay. It stays DELAYED until its time has come; the index finds those due.
ALTER TABLE workflow_status ADD COLUMN delay_until_epoch_ms BIGINT;
CREATE INDEX IF NOT EXISTS idx_workflow_status_delayed
  ON workflow_status (delay_until_epoch_ms)
  WHERE status = 'DELAYED';
