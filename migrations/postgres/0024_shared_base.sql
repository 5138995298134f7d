-- online
-- Brings the tables to the state that all languages share at version 100. Below 100 every language has numbers
-- of its own, so a database below 100 that another library has left says little by its number: everything added
-- since the first tables is stated again here, and every statement does nothing where its work is done. The
-- claims get partial indexes that hold only what is in flight; the indexes they replace go. Events and stream
-- values are announced by the process that writes them, so their triggers go too.
ALTER TABLE {schema}.workflow_status
  ADD COLUMN IF NOT EXISTS queue_partition_key TEXT,
  ADD COLUMN IF NOT EXISTS forked_from TEXT,
  ADD COLUMN IF NOT EXISTS owner_xid TEXT,
  ADD COLUMN IF NOT EXISTS parent_workflow_id TEXT,
  ADD COLUMN IF NOT EXISTS serialization TEXT,
  ADD COLUMN IF NOT EXISTS delay_until_epoch_ms BIGINT,
  ADD COLUMN IF NOT EXISTS was_forked_from BOOLEAN NOT NULL DEFAULT FALSE,
  ADD COLUMN IF NOT EXISTS rate_limited BOOLEAN NOT NULL DEFAULT FALSE,
  ADD COLUMN IF NOT EXISTS completed_at BIGINT,
  ADD COLUMN IF NOT EXISTS attributes JSONB,
  ADD COLUMN IF NOT EXISTS schedule_name TEXT,
  ADD COLUMN IF NOT EXISTS debounce_deadline_epoch_ms BIGINT,
  ADD COLUMN IF NOT EXISTS is_debounced BOOLEAN NOT NULL DEFAULT FALSE;

ALTER TABLE {schema}.operation_outputs
  ADD COLUMN IF NOT EXISTS started_at_epoch_ms BIGINT,
  ADD COLUMN IF NOT EXISTS completed_at_epoch_ms BIGINT,
  ADD COLUMN IF NOT EXISTS serialization TEXT;

ALTER TABLE {schema}.notifications
  ADD COLUMN IF NOT EXISTS serialization TEXT,
  ADD COLUMN IF NOT EXISTS consumed BOOLEAN NOT NULL DEFAULT FALSE;

ALTER TABLE {schema}.workflow_events ADD COLUMN IF NOT EXISTS serialization TEXT;

ALTER TABLE {schema}.streams
  ADD COLUMN IF NOT EXISTS function_id INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN IF NOT EXISTS serialization TEXT;

CREATE TABLE IF NOT EXISTS {schema}.workflow_events_history (
  workflow_uuid TEXT NOT NULL
    REFERENCES {schema}.workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  function_id INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (workflow_uuid, function_id, key)
);

ALTER TABLE {schema}.workflow_events_history ADD COLUMN IF NOT EXISTS serialization TEXT;

CREATE TABLE IF NOT EXISTS {schema}.workflow_schedules (
  schedule_id TEXT PRIMARY KEY,
  schedule_name TEXT NOT NULL UNIQUE,
  workflow_name TEXT NOT NULL,
  workflow_class_name TEXT,
  schedule TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'ACTIVE',
  context TEXT NOT NULL
);

ALTER TABLE {schema}.workflow_schedules
  ADD COLUMN IF NOT EXISTS last_fired_at TEXT,
  ADD COLUMN IF NOT EXISTS automatic_backfill BOOLEAN NOT NULL DEFAULT FALSE,
  ADD COLUMN IF NOT EXISTS cron_timezone TEXT,
  ADD COLUMN IF NOT EXISTS queue_name TEXT;

CREATE TABLE IF NOT EXISTS {schema}.application_versions (
  version_id TEXT PRIMARY KEY,
  version_name TEXT NOT NULL UNIQUE,
  version_timestamp BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT,
  created_at BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT
);

CREATE TABLE IF NOT EXISTS {schema}.queues (
  queue_id TEXT PRIMARY KEY DEFAULT gen_random_uuid()::TEXT,
  name TEXT NOT NULL UNIQUE,
  concurrency INTEGER,
  worker_concurrency INTEGER,
  rate_limit_max INTEGER,
  rate_limit_period_sec DOUBLE PRECISION,
  priority_enabled BOOLEAN NOT NULL DEFAULT FALSE,
  partition_queue BOOLEAN NOT NULL DEFAULT FALSE,
  polling_interval_sec DOUBLE PRECISION NOT NULL DEFAULT 1.0,
  created_at BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT,
  updated_at BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT
);

-- These two may still hold every workflow, in a database that another library has left.
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_workflow_status_forked_from;
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_forked_from
  ON {schema}.workflow_status (forked_from)
  WHERE forked_from IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_workflow_status_parent_workflow_id;
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_parent_workflow_id
  ON {schema}.workflow_status (parent_workflow_id)
  WHERE parent_workflow_id IS NOT NULL;

CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_delayed
  ON {schema}.workflow_status (delay_until_epoch_ms)
  WHERE status = 'DELAYED';
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_pending
  ON {schema}.workflow_status (created_at)
  WHERE status = 'PENDING';
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_failed
  ON {schema}.workflow_status (status, created_at)
  WHERE status IN ('ERROR', 'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED');
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_in_flight
  ON {schema}.workflow_status (queue_name, status, priority, created_at)
  WHERE status IN ('ENQUEUED', 'PENDING');
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_partition_dequeue_v2
  ON {schema}.workflow_status (queue_name, status, queue_partition_key, priority, created_at, workflow_uuid)
  WHERE status IN ('ENQUEUED', 'PENDING') AND queue_partition_key IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_rate_limited
  ON {schema}.workflow_status (queue_name, started_at_epoch_ms)
  WHERE rate_limited = TRUE;
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_started_at
  ON {schema}.workflow_status (started_at_epoch_ms)
  WHERE started_at_epoch_ms IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_completed_at
  ON {schema}.workflow_status (completed_at)
  WHERE completed_at IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_attributes
  ON {schema}.workflow_status USING GIN (attributes)
  WHERE attributes IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_schedule_name
  ON {schema}.workflow_status (schedule_name)
  WHERE schedule_name IS NOT NULL;
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_operation_outputs_completed_at_function_name
  ON {schema}.operation_outputs (completed_at_epoch_ms, function_name);

-- The new unique index stands before the old constraint goes: no duplicate can slip in between.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS uq_workflow_status_dedup_id
  ON {schema}.workflow_status (queue_name, deduplication_id)
  WHERE deduplication_id IS NOT NULL;
ALTER TABLE {schema}.workflow_status DROP CONSTRAINT IF EXISTS uq_workflow_status_queue_name_dedup_id;

DROP INDEX CONCURRENTLY IF EXISTS {schema}.workflow_status_executor_id_index;
DROP INDEX CONCURRENTLY IF EXISTS {schema}.workflow_status_status_index;
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_workflow_status_queue_status_started;
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_workflow_status_partition_dequeue;

-- enqueue_workflow takes the user, the roles and a delay. The old form goes: with two functions of that name, a
-- call that leaves out the new parameters would be ambiguous.
DROP FUNCTION IF EXISTS {schema}.enqueue_workflow(
  TEXT, TEXT, JSON[], JSON, TEXT, TEXT, TEXT, TEXT, BIGINT, BIGINT, TEXT, INTEGER, TEXT
);
CREATE OR REPLACE FUNCTION {schema}.enqueue_workflow(
  workflow_name TEXT,
  queue_name TEXT,
  positional_args JSON[] DEFAULT ARRAY[]::JSON[],
  named_args JSON DEFAULT '{}'::JSON,
  class_name TEXT DEFAULT NULL,
  config_name TEXT DEFAULT NULL,
  workflow_id TEXT DEFAULT NULL,
  app_version TEXT DEFAULT NULL,
  timeout_ms BIGINT DEFAULT NULL,
  deadline_epoch_ms BIGINT DEFAULT NULL,
  deduplication_id TEXT DEFAULT NULL,
  priority INTEGER DEFAULT NULL,
  queue_partition_key TEXT DEFAULT NULL,
  authenticated_user TEXT DEFAULT NULL,
  authenticated_roles TEXT DEFAULT NULL,
  delay_until_epoch_ms BIGINT DEFAULT NULL
) RETURNS TEXT
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  id TEXT := COALESCE(workflow_id, gen_random_uuid()::TEXT);
  token TEXT := gen_random_uuid()::TEXT;
  now_ms BIGINT := (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT;
  input TEXT := json_build_object('positionalArgs', positional_args, 'namedArgs', named_args)::TEXT;
BEGIN
  IF workflow_name IS NULL OR workflow_name = '' THEN
    RAISE EXCEPTION 'Workflow name cannot be null or empty';
  END IF;
  IF queue_name IS NULL OR queue_name = '' THEN
    RAISE EXCEPTION 'Queue name cannot be null or empty';
  END IF;
  IF json_typeof(named_args) <> 'object' THEN
    RAISE EXCEPTION 'Named args must be a JSON object';
  END IF;
  IF workflow_id = '' THEN
    RAISE EXCEPTION 'Workflow ID cannot be an empty string if provided.';
  END IF;
  IF delay_until_epoch_ms < 0 THEN
    RAISE EXCEPTION 'delay_until_epoch_ms must be >= 0';
  END IF;

  INSERT INTO {schema}.workflow_status AS workflow (
    workflow_uuid,
    status,
    name,
    inputs,
    serialization,
    class_name,
    config_name,
    queue_name,
    deduplication_id,
    priority,
    queue_partition_key,
    application_version,
    workflow_timeout_ms,
    workflow_deadline_epoch_ms,
    recovery_attempts,
    owner_xid,
    created_at,
    updated_at,
    authenticated_user,
    authenticated_roles,
    delay_until_epoch_ms
  ) VALUES (
    id,
    CASE WHEN enqueue_workflow.delay_until_epoch_ms IS NULL THEN 'ENQUEUED' ELSE 'DELAYED' END,
    workflow_name,
    input,
    'portable_json',
    enqueue_workflow.class_name,
    enqueue_workflow.config_name,
    enqueue_workflow.queue_name,
    enqueue_workflow.deduplication_id,
    COALESCE(enqueue_workflow.priority, 0),
    enqueue_workflow.queue_partition_key,
    app_version,
    timeout_ms,
    deadline_epoch_ms,
    0,
    token,
    now_ms,
    now_ms,
    enqueue_workflow.authenticated_user,
    enqueue_workflow.authenticated_roles,
    enqueue_workflow.delay_until_epoch_ms
  )
  ON CONFLICT (workflow_uuid) DO UPDATE SET updated_at = EXCLUDED.updated_at;
  RETURN id;
EXCEPTION
  WHEN unique_violation THEN
    RAISE EXCEPTION 'DBOS queue duplicated' USING
      DETAIL = format(
        'Workflow %s with queue %s and deduplication ID %s already exists', id, queue_name, deduplication_id
      ),
      ERRCODE = 'unique_violation';
END;
$body$;

CREATE OR REPLACE FUNCTION {schema}.send_message(
  destination_id TEXT,
  message JSON,
  topic TEXT DEFAULT NULL,
  message_id TEXT DEFAULT NULL
) RETURNS VOID
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
  INSERT INTO {schema}.notifications (message_uuid, destination_uuid, topic, message, serialization)
  VALUES (
    COALESCE(message_id, gen_random_uuid()::TEXT),
    destination_id,
    COALESCE(send_message.topic, '__null__topic__'),
    send_message.message::TEXT,
    'portable_json'
  )
  ON CONFLICT (message_uuid) DO NOTHING;
EXCEPTION
  WHEN foreign_key_violation THEN
    RAISE EXCEPTION 'DBOS non-existent workflow' USING
      DETAIL = format('Destination workflow %s does not exist', destination_id),
      ERRCODE = 'foreign_key_violation';
END;
$body$;

DROP TRIGGER IF EXISTS dbos_workflow_events_trigger ON {schema}.workflow_events;
DROP FUNCTION IF EXISTS {schema}.workflow_events_function();
DROP TRIGGER IF EXISTS dbos_streams_trigger ON {schema}.streams;
DROP FUNCTION IF EXISTS {schema}.streams_function();
-- if listen_notify

CREATE OR REPLACE FUNCTION {schema}.notifications_function() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
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
-- end if
