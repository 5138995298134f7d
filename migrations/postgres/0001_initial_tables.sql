-- The first tables: workflows and what hangs on them. A row of workflow_status is one workflow; the other
-- tables hold its checkpoints, messages, events and stream values and are deleted with it. event_dispatch_kv
-- is the memory of event receivers and belongs to no workflow. The triggers wake a process that waits for a
-- message or an event.
CREATE TABLE IF NOT EXISTS {schema}.workflow_status (
  workflow_uuid TEXT PRIMARY KEY,
  status TEXT,
  name TEXT,
  authenticated_user TEXT,
  assumed_role TEXT,
  authenticated_roles TEXT,
  request TEXT,
  inputs TEXT,
  output TEXT,
  error TEXT,
  executor_id TEXT,
  created_at BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT,
  updated_at BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT,
  application_version TEXT,
  application_id TEXT,
  class_name VARCHAR(255) DEFAULT NULL,
  config_name VARCHAR(255) DEFAULT NULL,
  recovery_attempts BIGINT DEFAULT 0,
  queue_name TEXT,
  workflow_timeout_ms BIGINT,
  workflow_deadline_epoch_ms BIGINT,
  started_at_epoch_ms BIGINT,
  deduplication_id TEXT,
  priority INTEGER NOT NULL DEFAULT 0,
  CONSTRAINT uq_workflow_status_queue_name_dedup_id UNIQUE (queue_name, deduplication_id)
);

CREATE INDEX IF NOT EXISTS workflow_status_created_at_index ON {schema}.workflow_status (created_at);
CREATE INDEX IF NOT EXISTS workflow_status_executor_id_index ON {schema}.workflow_status (executor_id);
CREATE INDEX IF NOT EXISTS workflow_status_status_index ON {schema}.workflow_status (status);

CREATE TABLE IF NOT EXISTS {schema}.operation_outputs (
  workflow_uuid TEXT NOT NULL
    REFERENCES {schema}.workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  function_id INTEGER NOT NULL,
  function_name TEXT NOT NULL DEFAULT '',
  output TEXT,
  error TEXT,
  child_workflow_id TEXT,
  PRIMARY KEY (workflow_uuid, function_id)
);

CREATE TABLE IF NOT EXISTS {schema}.notifications (
  message_uuid TEXT NOT NULL DEFAULT gen_random_uuid(),
  destination_uuid TEXT NOT NULL
    REFERENCES {schema}.workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  topic TEXT,
  message TEXT NOT NULL,
  created_at_epoch_ms BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT
);

CREATE INDEX IF NOT EXISTS idx_workflow_topic ON {schema}.notifications (destination_uuid, topic);

CREATE TABLE IF NOT EXISTS {schema}.workflow_events (
  workflow_uuid TEXT NOT NULL
    REFERENCES {schema}.workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (workflow_uuid, key)
);

CREATE TABLE IF NOT EXISTS {schema}.streams (
  workflow_uuid TEXT NOT NULL
    REFERENCES {schema}.workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  "offset" INTEGER NOT NULL,
  PRIMARY KEY (workflow_uuid, key, "offset")
);

CREATE TABLE IF NOT EXISTS {schema}.event_dispatch_kv (
  service_name TEXT NOT NULL,
  workflow_fn_name TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT,
  update_seq NUMERIC(38, 0),
  update_time NUMERIC(38, 15),
  PRIMARY KEY (service_name, workflow_fn_name, key)
);

-- if listen_notify
-- NOTIFY refuses a payload of 8000 bytes or more; such a message is found by polling instead.
CREATE OR REPLACE FUNCTION {schema}.notifications_function() RETURNS TRIGGER
LANGUAGE plpgsql
AS $body$
DECLARE
  payload TEXT := NEW.destination_uuid || '::' || NEW.topic;
BEGIN
  IF octet_length(payload) < 8000 THEN
    PERFORM pg_notify('dbos_notifications_channel', payload);
  END IF;
  RETURN NEW;
END;
$body$;

DROP TRIGGER IF EXISTS dbos_notifications_trigger ON {schema}.notifications;
CREATE TRIGGER dbos_notifications_trigger
  AFTER INSERT ON {schema}.notifications
  FOR EACH ROW EXECUTE FUNCTION {schema}.notifications_function();

CREATE OR REPLACE FUNCTION {schema}.workflow_events_function() RETURNS TRIGGER
LANGUAGE plpgsql
AS $body$
DECLARE
  payload TEXT := NEW.workflow_uuid || '::' || NEW.key;
BEGIN
  IF octet_length(payload) < 8000 THEN
    PERFORM pg_notify('dbos_workflow_events_channel', payload);
  END IF;
  RETURN NEW;
END;
$body$;

DROP TRIGGER IF EXISTS dbos_workflow_events_trigger ON {schema}.workflow_events;
CREATE TRIGGER dbos_workflow_events_trigger
  AFTER INSERT ON {schema}.workflow_events
  FOR EACH ROW EXECUTE FUNCTION {schema}.workflow_events_function();
-- end if
