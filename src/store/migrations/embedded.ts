// Generated from `migrations/` by `scripts/embed-migrations.mjs`; edit the .sql files and run it again.
import type { Migration } from './migration.js';

export const POSTGRES_MIGRATIONS: readonly Migration[] = [
  {
    number: 1,
    name: 'initial_tables',
    isOnline: false,
    sql: `-- The first tables: workflows and what hangs on them. A row of workflow_status is one workflow; the other
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
`,
  },
  {
    number: 2,
    name: 'queue_partition_key',
    isOnline: false,
    sql: `-- A partitioned queue keeps its limits for each partition key apart.
ALTER TABLE {schema}.workflow_status ADD COLUMN IF NOT EXISTS queue_partition_key TEXT;
`,
  },
  {
    number: 3,
    name: 'queue_status_index',
    isOnline: false,
    sql: `-- Claims and rate limits look for a queue's workflows by state and start time.
CREATE INDEX IF NOT EXISTS idx_workflow_status_queue_status_started
  ON {schema}.workflow_status (queue_name, status, started_at_epoch_ms);
`,
  },
  {
    number: 4,
    name: 'forked_from',
    isOnline: false,
    sql: `-- A fork remembers the workflow it was made from, and the forks of a workflow can be found.
ALTER TABLE {schema}.workflow_status ADD COLUMN IF NOT EXISTS forked_from TEXT;
CREATE INDEX IF NOT EXISTS idx_workflow_status_forked_from ON {schema}.workflow_status (forked_from);
`,
  },
  {
    number: 5,
    name: 'operation_timing',
    isOnline: false,
    sql: `-- A checkpoint tells when its step started and when it completed.
ALTER TABLE {schema}.operation_outputs
  ADD COLUMN IF NOT EXISTS started_at_epoch_ms BIGINT,
  ADD COLUMN IF NOT EXISTS completed_at_epoch_ms BIGINT;
`,
  },
  {
    number: 6,
    name: 'workflow_events_history',
    isOnline: false,
    sql: `-- Every value that an event has had, by the step that set it, so that a fork can take over the events as they
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
`,
  },
  {
    number: 7,
    name: 'owner_xid',
    isOnline: false,
    sql: `-- The fencing token of the run that owns the workflow.
ALTER TABLE {schema}.workflow_status ADD COLUMN IF NOT EXISTS owner_xid TEXT;
`,
  },
  {
    number: 8,
    name: 'parent_workflow_id',
    isOnline: false,
    sql: `-- A child workflow remembers its parent, and the children of a workflow can be found.
ALTER TABLE {schema}.workflow_status ADD COLUMN IF NOT EXISTS parent_workflow_id TEXT;
CREATE INDEX IF NOT EXISTS idx_workflow_status_parent_workflow_id
  ON {schema}.workflow_status (parent_workflow_id);
`,
  },
  {
    number: 9,
    name: 'workflow_schedules',
    isOnline: false,
    sql: `-- Schedules that are kept in the database: which workflow to start, and when.
CREATE TABLE IF NOT EXISTS {schema}.workflow_schedules (
  schedule_id TEXT PRIMARY KEY,
  schedule_name TEXT NOT NULL UNIQUE,
  workflow_name TEXT NOT NULL,
  workflow_class_name TEXT,
  schedule TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'ACTIVE',
  context TEXT NOT NULL
);
`,
  },
  {
    number: 10,
    name: 'notifications_primary_key',
    isOnline: false,
    sql: `-- A message is identified by its ID, so that sending it twice stores it once. The migration is left out where
-- the table has a primary key already; the runner looks before it runs this statement.
ALTER TABLE {schema}.notifications ADD PRIMARY KEY (message_uuid);
`,
  },
  {
    number: 11,
    name: 'serialization',
    isOnline: false,
    sql: `-- Every stored value names the format it is written in. NULL means the application's own serializer.
ALTER TABLE {schema}.workflow_status ADD COLUMN IF NOT EXISTS serialization TEXT;
ALTER TABLE {schema}.operation_outputs ADD COLUMN IF NOT EXISTS serialization TEXT;
ALTER TABLE {schema}.notifications ADD COLUMN IF NOT EXISTS serialization TEXT;
ALTER TABLE {schema}.workflow_events ADD COLUMN IF NOT EXISTS serialization TEXT;
ALTER TABLE {schema}.workflow_events_history ADD COLUMN IF NOT EXISTS serialization TEXT;
ALTER TABLE {schema}.streams ADD COLUMN IF NOT EXISTS serialization TEXT;
`,
  },
  {
    number: 12,
    name: 'consumed_notifications',
    isOnline: false,
    sql: `-- A received message is marked, not deleted, so that it can be inspected later.
ALTER TABLE {schema}.notifications ADD COLUMN IF NOT EXISTS consumed BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX IF NOT EXISTS idx_notifications ON {schema}.notifications (destination_uuid, topic);
`,
  },
  {
    number: 13,
    name: 'application_versions',
    isOnline: false,
    sql: `-- The versions of the application that have been launched. The latest is the one with the highest
-- version_timestamp, which an operator can move; created_at never changes.
CREATE TABLE IF NOT EXISTS {schema}.application_versions (
  version_id TEXT PRIMARY KEY,
  version_name TEXT NOT NULL UNIQUE,
  version_timestamp BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT,
  created_at BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT
);
`,
  },
  {
    number: 14,
    name: 'stored_functions',
    isOnline: false,
    sql: `-- Enqueue a workflow or send a message from plain SQL, for example from a trigger or from an application in
-- another language. Arguments and messages are JSON and are stored in the portable format. A workflow ID that
-- exists already is returned as it is; a message ID that exists already is ignored.
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
  queue_partition_key TEXT DEFAULT NULL
) RETURNS TEXT
LANGUAGE plpgsql
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
    updated_at
  ) VALUES (
    id,
    'ENQUEUED',
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
    now_ms
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
`,
  },
  {
    number: 15,
    name: 'schedule_enhancements',
    isOnline: false,
    sql: `-- A schedule knows when it fired last, whether to make up for missed times, and in which time zone it counts.
ALTER TABLE {schema}.workflow_schedules
  ADD COLUMN IF NOT EXISTS last_fired_at TEXT,
  ADD COLUMN IF NOT EXISTS automatic_backfill BOOLEAN NOT NULL DEFAULT FALSE,
  ADD COLUMN IF NOT EXISTS cron_timezone TEXT;
`,
  },
  {
    number: 16,
    name: 'delayed_workflows',
    isOnline: false,
    sql: `-- A workflow can be enqueued with a delay. It stays DELAYED until its time has come; the index finds those due.
ALTER TABLE {schema}.workflow_status ADD COLUMN IF NOT EXISTS delay_until_epoch_ms BIGINT;
CREATE INDEX IF NOT EXISTS idx_workflow_status_delayed
  ON {schema}.workflow_status (delay_until_epoch_ms)
  WHERE status = 'DELAYED';
`,
  },
  {
    number: 17,
    name: 'schedule_queue_name',
    isOnline: false,
    sql: `-- The queue that a schedule's workflows go to. NULL means the internal queue.
ALTER TABLE {schema}.workflow_schedules ADD COLUMN IF NOT EXISTS queue_name TEXT;
`,
  },
  {
    number: 18,
    name: 'was_forked_from',
    isOnline: false,
    sql: `-- Tells of a workflow, without a search, whether any fork was ever made from it.
ALTER TABLE {schema}.workflow_status ADD COLUMN IF NOT EXISTS was_forked_from BOOLEAN NOT NULL DEFAULT FALSE;
`,
  },
  {
    number: 19,
    name: 'completed_at_function_name_index',
    isOnline: false,
    sql: `-- Metrics count checkpoints by time and step name.
CREATE INDEX IF NOT EXISTS idx_operation_outputs_completed_at_function_name
  ON {schema}.operation_outputs (completed_at_epoch_ms, function_name);
`,
  },
  {
    number: 20,
    name: 'function_search_path',
    isOnline: false,
    sql: `-- Functions resolve names in the system catalog only, whatever the caller's search_path is. Otherwise a caller
-- could make them call a function of their own.
ALTER FUNCTION {schema}.enqueue_workflow(
  TEXT, TEXT, JSON[], JSON, TEXT, TEXT, TEXT, TEXT, BIGINT, BIGINT, TEXT, INTEGER, TEXT
) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION {schema}.send_message(TEXT, JSON, TEXT, TEXT) SET search_path = pg_catalog, pg_temp;
-- if listen_notify

-- Written out in full, not altered: an earlier run may have left the triggers and their functions out.
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

CREATE OR REPLACE FUNCTION {schema}.workflow_events_function() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
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
-- end if
`,
  },
  {
    number: 21,
    name: 'queues',
    isOnline: false,
    sql: `-- Queues that are kept in the database, so that their limits can be changed while workers run.
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
`,
  },
  {
    number: 22,
    name: 'partial_forked_from_index',
    isOnline: true,
    sql: `-- online
-- Few workflows are forks: the index need not hold the others.
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_workflow_status_forked_from;
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_forked_from
  ON {schema}.workflow_status (forked_from)
  WHERE forked_from IS NOT NULL;
`,
  },
  {
    number: 23,
    name: 'partial_parent_workflow_id_index',
    isOnline: true,
    sql: `-- online
-- Few workflows are children: the index need not hold the others.
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_workflow_status_parent_workflow_id;
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_parent_workflow_id
  ON {schema}.workflow_status (parent_workflow_id)
  WHERE parent_workflow_id IS NOT NULL;
`,
  },
  {
    number: 24,
    name: 'shared_base',
    isOnline: true,
    sql: `-- online
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
`,
  },
  {
    number: 100,
    name: 'workflow_status_application_name',
    isOnline: false,
    sql: `-- Several applications can share one database: a workflow belongs to the application it names. NULL is
-- everybody's.
ALTER TABLE {schema}.workflow_status ADD COLUMN IF NOT EXISTS application_name TEXT;
`,
  },
  {
    number: 101,
    name: 'queues_application_name',
    isOnline: false,
    sql: `-- A queue belongs to the application it names.
ALTER TABLE {schema}.queues ADD COLUMN IF NOT EXISTS application_name TEXT;
`,
  },
  {
    number: 102,
    name: 'workflow_schedules_application_name',
    isOnline: false,
    sql: `-- A schedule belongs to the application it names.
ALTER TABLE {schema}.workflow_schedules ADD COLUMN IF NOT EXISTS application_name TEXT;
`,
  },
  {
    number: 103,
    name: 'application_versions_application_name',
    isOnline: false,
    sql: `-- A version belongs to the application it names.
ALTER TABLE {schema}.application_versions ADD COLUMN IF NOT EXISTS application_name TEXT;
`,
  },
  {
    number: 104,
    name: 'operation_outputs_application_name',
    isOnline: false,
    sql: `-- A checkpoint repeats the application of its workflow, so that it can be counted without a join.
ALTER TABLE {schema}.operation_outputs ADD COLUMN IF NOT EXISTS application_name TEXT;
`,
  },
  {
    number: 105,
    name: 'enqueue_workflow_application_name',
    isOnline: false,
    sql: `-- enqueue_workflow can say to which application the workflow belongs. The old form goes first: with two
-- functions of that name, a call that leaves out the new parameter would be ambiguous.
DROP FUNCTION IF EXISTS {schema}.enqueue_workflow(
  TEXT, TEXT, JSON[], JSON, TEXT, TEXT, TEXT, TEXT, BIGINT, BIGINT, TEXT, INTEGER, TEXT, TEXT, TEXT, BIGINT
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
  delay_until_epoch_ms BIGINT DEFAULT NULL,
  application_name TEXT DEFAULT NULL
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
    delay_until_epoch_ms,
    application_name
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
    enqueue_workflow.delay_until_epoch_ms,
    enqueue_workflow.application_name
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
`,
  },
  {
    number: 106,
    name: 'owned_version_names',
    isOnline: true,
    sql: `-- online
-- Within one application a version name is used once.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS uq_application_versions_owner_version
  ON {schema}.application_versions (application_name, version_name)
  WHERE application_name IS NOT NULL;
`,
  },
  {
    number: 107,
    name: 'unowned_version_names',
    isOnline: true,
    sql: `-- online
-- Among the versions that belong to no application a version name is used once.
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS uq_application_versions_unclaimed_version
  ON {schema}.application_versions (version_name)
  WHERE application_name IS NULL;
`,
  },
  {
    number: 108,
    name: 'queue_partition_limits',
    isOnline: false,
    sql: `-- Limits that hold for each partition of a queue.
ALTER TABLE {schema}.queues
  ADD COLUMN IF NOT EXISTS partition_concurrency INTEGER,
  ADD COLUMN IF NOT EXISTS partition_worker_concurrency INTEGER,
  ADD COLUMN IF NOT EXISTS partition_rate_limit_max INTEGER,
  ADD COLUMN IF NOT EXISTS partition_rate_limit_period_sec DOUBLE PRECISION;
`,
  },
  {
    number: 109,
    name: 'workflow_input_and_output',
    isOnline: false,
    sql: `-- Input and outcome in tables of their own, which can be kept or deleted apart from the workflow. Everstep
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
`,
  },
  {
    number: 110,
    name: 'operation_outputs_retention',
    isOnline: false,
    sql: `-- The time that the retention of a checkpoint counts from.
ALTER TABLE {schema}.operation_outputs
  ADD COLUMN IF NOT EXISTS retention_timestamp BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT;
`,
  },
  {
    number: 111,
    name: 'operation_outputs_retention_index',
    isOnline: true,
    sql: `-- online
-- Retention finds old checkpoints by their time.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_operation_outputs_retention
  ON {schema}.operation_outputs (retention_timestamp);
`,
  },
  {
    number: 112,
    name: 'operation_outputs_foreign_key',
    isOnline: false,
    sql: `-- Empty on purpose. Other libraries drop the foreign key of operation_outputs here. Everstep keeps it where it
-- is: checkpoints are deleted with their workflow, and a checkpoint without a workflow cannot be written.
`,
  },
  {
    number: 113,
    name: 'enqueue_workflow_input',
    isOnline: false,
    sql: `-- enqueue_workflow stores the input in workflow_input, where every reader looks for it. A workflow that exists
-- already keeps the input it has, in whichever table that is.
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
  delay_until_epoch_ms BIGINT DEFAULT NULL,
  application_name TEXT DEFAULT NULL
) RETURNS TEXT
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  id TEXT := COALESCE(workflow_id, gen_random_uuid()::TEXT);
  token TEXT := gen_random_uuid()::TEXT;
  owner TEXT;
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
    delay_until_epoch_ms,
    application_name
  ) VALUES (
    id,
    CASE WHEN enqueue_workflow.delay_until_epoch_ms IS NULL THEN 'ENQUEUED' ELSE 'DELAYED' END,
    workflow_name,
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
    enqueue_workflow.delay_until_epoch_ms,
    enqueue_workflow.application_name
  )
  ON CONFLICT (workflow_uuid) DO UPDATE SET updated_at = EXCLUDED.updated_at
  RETURNING workflow.owner_xid INTO owner;

  -- Only the call that created the workflow gives it its input. A row that is there already was left by a
  -- deleted workflow of the same ID.
  IF owner = token THEN
    INSERT INTO {schema}.workflow_input (workflow_uuid, inputs, retention_timestamp)
    VALUES (id, input, now_ms)
    ON CONFLICT (workflow_uuid) DO UPDATE
    SET inputs = EXCLUDED.inputs, retention_timestamp = EXCLUDED.retention_timestamp;
  END IF;
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
`,
  },
  {
    number: 114,
    name: 'drop_notifications_index',
    isOnline: true,
    sql: `-- online
-- idx_workflow_topic has the same columns.
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_notifications;
`,
  },
  {
    number: 115,
    name: 'in_flight_index_v2',
    isOnline: true,
    sql: `-- online
-- A claim reads the application's name from the index.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_in_flight_v2
  ON {schema}.workflow_status (queue_name, status, priority, created_at)
  INCLUDE (application_name)
  WHERE status IN ('ENQUEUED', 'PENDING');
`,
  },
  {
    number: 116,
    name: 'drop_in_flight_index',
    isOnline: true,
    sql: `-- online
-- Replaced by idx_workflow_status_in_flight_v2.
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_workflow_status_in_flight;
`,
  },
  {
    number: 117,
    name: 'partition_dequeue_index_v3',
    isOnline: true,
    sql: `-- online
-- A claim from a partitioned queue reads the application's name from the index.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_partition_dequeue_v3
  ON {schema}.workflow_status (queue_name, status, queue_partition_key, priority, created_at, workflow_uuid)
  INCLUDE (application_name)
  WHERE status IN ('ENQUEUED', 'PENDING') AND queue_partition_key IS NOT NULL;
`,
  },
  {
    number: 118,
    name: 'drop_partition_dequeue_index_v2',
    isOnline: true,
    sql: `-- online
-- Replaced by idx_workflow_status_partition_dequeue_v3.
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_workflow_status_partition_dequeue_v2;
`,
  },
  {
    number: 119,
    name: 'completed_at_function_name_index_v2',
    isOnline: true,
    sql: `-- online
-- Metrics of one application read its name from the index.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_operation_outputs_completed_at_function_name_v2
  ON {schema}.operation_outputs (completed_at_epoch_ms, function_name)
  INCLUDE (application_name);
`,
  },
  {
    number: 120,
    name: 'drop_completed_at_function_name_index',
    isOnline: true,
    sql: `-- online
-- Replaced by idx_operation_outputs_completed_at_function_name_v2.
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_operation_outputs_completed_at_function_name;
`,
  },
  {
    number: 121,
    name: 'consumed_by_function_id',
    isOnline: false,
    sql: `-- A received message remembers the step that received it.
ALTER TABLE {schema}.notifications ADD COLUMN IF NOT EXISTS consumed_by_function_id INTEGER;
`,
  },
  {
    number: 122,
    name: 'deadline_index',
    isOnline: true,
    sql: `-- online
-- Finds the unfinished workflows whose deadline has passed.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_deadline
  ON {schema}.workflow_status (workflow_deadline_epoch_ms)
  WHERE status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND workflow_deadline_epoch_ms IS NOT NULL;
`,
  },
  {
    number: 123,
    name: 'creator_xid',
    isOnline: false,
    sql: `-- The token of the call that created the workflow. Unlike owner_xid it never changes.
ALTER TABLE {schema}.workflow_status ADD COLUMN IF NOT EXISTS creator_xid TEXT;
`,
  },
];

export const POSTGRES_EVERSTEP_MIGRATIONS: readonly Migration[] = [
  {
    number: 1,
    name: 'executors',
    isOnline: false,
    sql: `-- The engines that are or were running: one row for each launch. An engine prolongs its lease by the database's
-- clock; when the lease has ended, any other engine takes over its workflows.
CREATE TABLE IF NOT EXISTS {schema}.executors (
  incarnation_id TEXT PRIMARY KEY,
  executor_id TEXT NOT NULL,
  application_name TEXT,
  application_version TEXT,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started_at BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT,
  heartbeat_at BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT,
  lease_until_epoch_ms BIGINT NOT NULL,
  metadata TEXT
);

CREATE INDEX IF NOT EXISTS idx_executors_lease_until ON {schema}.executors (lease_until_epoch_ms);
CREATE INDEX IF NOT EXISTS idx_executors_executor_id ON {schema}.executors (executor_id);
`,
  },
  {
    number: 2,
    name: 'event_dispatch_kv',
    isOnline: false,
    sql: `-- Empty on purpose: on Postgres every database has event_dispatch_kv. On SQLite, other libraries leave it out.
`,
  },
  {
    number: 3,
    name: 'paused_queues',
    isOnline: false,
    sql: `-- Queues that nobody takes workflows from for now.
CREATE TABLE IF NOT EXISTS {schema}.paused_queues (
  name TEXT PRIMARY KEY,
  paused_at BIGINT NOT NULL
);
`,
  },
  {
    number: 4,
    name: 'quiet_notifications',
    isOnline: false,
    sql: `-- Everstep tells of its own messages apart from the commits that contain them, because NOTIFY serialises commits. Its
-- sessions therefore set everstep.quiet; for rows that any other program inserts, the trigger notifies as before.
-- if listen_notify
CREATE OR REPLACE FUNCTION {schema}.notifications_function() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  payload TEXT := NEW.destination_uuid || '::' || NEW.topic;
BEGIN
  IF current_setting('everstep.quiet', TRUE) = 'on' THEN
    RETURN NEW;
  END IF;
  IF octet_length(payload) < 8000 THEN
    PERFORM pg_notify('dbos_notifications_channel', payload);
  END IF;
  RETURN NEW;
END;
$body$;
-- end if
`,
  },
  {
    number: 5,
    name: 'unconsumed_messages',
    isOnline: true,
    sql: `-- online
-- The oldest message that was not received yet is found without passing all those that were.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_notifications_unconsumed
  ON {schema}.notifications (destination_uuid, topic, created_at_epoch_ms, message_uuid)
  WHERE consumed = FALSE;
`,
  },
  {
    number: 6,
    name: 'enqueue_wakes_dispatchers',
    isOnline: false,
    sql: `-- A workflow that plain SQL enqueues is claimed at once: enqueue_workflow tells the dispatchers of the queue, and of the
-- partition if it has one. Otherwise it is as it was.
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
  delay_until_epoch_ms BIGINT DEFAULT NULL,
  application_name TEXT DEFAULT NULL
) RETURNS TEXT
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  id TEXT := COALESCE(workflow_id, gen_random_uuid()::TEXT);
  token TEXT := gen_random_uuid()::TEXT;
  owner TEXT;
  now_ms BIGINT := (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT;
  input TEXT := json_build_object('positionalArgs', positional_args, 'namedArgs', named_args)::TEXT;
  place TEXT;
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
    delay_until_epoch_ms,
    application_name
  ) VALUES (
    id,
    CASE WHEN enqueue_workflow.delay_until_epoch_ms IS NULL THEN 'ENQUEUED' ELSE 'DELAYED' END,
    workflow_name,
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
    enqueue_workflow.delay_until_epoch_ms,
    enqueue_workflow.application_name
  )
  ON CONFLICT (workflow_uuid) DO UPDATE SET updated_at = EXCLUDED.updated_at
  RETURNING workflow.owner_xid INTO owner;

  -- Only the call that created the workflow gives it its input. A row that is there already was left by a
  -- deleted workflow of the same ID.
  IF owner = token THEN
    INSERT INTO {schema}.workflow_input (workflow_uuid, inputs, retention_timestamp)
    VALUES (id, input, now_ms)
    ON CONFLICT (workflow_uuid) DO UPDATE
    SET inputs = EXCLUDED.inputs, retention_timestamp = EXCLUDED.retention_timestamp;

    place := CASE
      WHEN enqueue_workflow.queue_partition_key IS NULL THEN json_build_array(enqueue_workflow.queue_name)
      ELSE json_build_array(enqueue_workflow.queue_name, enqueue_workflow.queue_partition_key)
    END::TEXT;
    IF octet_length(place) < 8000 THEN
      PERFORM pg_notify('everstep_queues', place);
    END IF;
  END IF;
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
`,
  },
  {
    number: 7,
    name: 'schedule_settings',
    isOnline: false,
    sql: `-- What only Everstep knows of a schedule, and a counter by which processes see that schedules have changed.
CREATE TABLE IF NOT EXISTS {schema}.schedule_settings (
  schedule_id TEXT PRIMARY KEY,
  overlap TEXT NOT NULL,
  jitter_ms BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS {schema}.change_counters (
  topic TEXT PRIMARY KEY,
  changes BIGINT NOT NULL
);
`,
  },
  {
    number: 8,
    name: 'listing_indexes',
    isOnline: true,
    sql: `-- online
-- For lists of workflows. Their conditions are written so that no other statement sees its own in them: on a table without
-- statistics, a claim would otherwise be read by them.
--
-- The newest workflows of a queue, however few and old they are.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_listing_queue
  ON {schema}.workflow_status (queue_name, created_at)
  WHERE CASE WHEN queue_name IS NULL THEN FALSE ELSE TRUE END;
-- The newest workflows that wait. Those of other states have indexes, or are most of the table.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_listing_waiting
  ON {schema}.workflow_status (status, created_at)
  WHERE CASE WHEN status IN ('ENQUEUED', 'DELAYED') THEN TRUE ELSE FALSE END;
`,
  },
  {
    number: 9,
    name: 'fenced_sessions',
    isOnline: false,
    sql: `-- Sessions whose connection was lost during a commit. A copy of the commit that reaches the server late finds its session
-- here, and refuses itself.
CREATE TABLE IF NOT EXISTS {schema}.fenced_sessions (
  session_key BIGINT PRIMARY KEY,
  fenced_at BIGINT NOT NULL
);
`,
  },
  {
    number: 10,
    name: 'functions_agree',
    isOnline: false,
    sql: `-- The two functions do as DBOS.startWorkflow and DBOS.send do. enqueue_workflow refuses an ID under which another function
-- runs, and warns of one in another queue. send_message stores an idempotency key as DBOS.send does, so that a message sent
-- both ways is one message, and the same key may be used for several workflows. enqueue_workflow also refuses roles that are no
-- list, and times that cannot be added to others: a workflow with such a row could only fail when it is claimed.
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
  delay_until_epoch_ms BIGINT DEFAULT NULL,
  application_name TEXT DEFAULT NULL
) RETURNS TEXT
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  id TEXT := COALESCE(workflow_id, gen_random_uuid()::TEXT);
  token TEXT := gen_random_uuid()::TEXT;
  found RECORD;
  now_ms BIGINT := (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT;
  input TEXT := json_build_object('positionalArgs', positional_args, 'namedArgs', named_args)::TEXT;
  place TEXT;
  roles JSON;
  -- About 30,000 years, as in the library.
  longest_ms CONSTANT BIGINT := 1000000000000000;
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
  IF delay_until_epoch_ms > longest_ms THEN
    RAISE EXCEPTION 'delay_until_epoch_ms must be <= %', longest_ms;
  END IF;
  IF timeout_ms NOT BETWEEN -longest_ms AND longest_ms THEN
    RAISE EXCEPTION 'timeout_ms must be <= %', longest_ms;
  END IF;
  IF deadline_epoch_ms NOT BETWEEN 0 AND longest_ms THEN
    RAISE EXCEPTION 'deadline_epoch_ms must be between 0 and %', longest_ms;
  END IF;
  IF authenticated_roles <> '' THEN
    BEGIN
      roles := authenticated_roles::JSON;
    EXCEPTION
      WHEN data_exception THEN
        roles := 'null'::JSON;
    END;
    IF json_typeof(roles) <> 'array' THEN
      RAISE EXCEPTION 'authenticated_roles must be a JSON array of strings, such as ["admin"]';
    END IF;
    IF EXISTS (SELECT 1 FROM json_array_elements(roles) AS listed(role) WHERE json_typeof(listed.role) <> 'string') THEN
      RAISE EXCEPTION 'authenticated_roles must be a JSON array of strings, such as ["admin"]';
    END IF;
  END IF;

  INSERT INTO {schema}.workflow_status AS workflow (
    workflow_uuid,
    status,
    name,
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
    delay_until_epoch_ms,
    application_name
  ) VALUES (
    id,
    CASE WHEN enqueue_workflow.delay_until_epoch_ms IS NULL THEN 'ENQUEUED' ELSE 'DELAYED' END,
    workflow_name,
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
    enqueue_workflow.delay_until_epoch_ms,
    enqueue_workflow.application_name
  )
  ON CONFLICT (workflow_uuid) DO UPDATE SET updated_at = EXCLUDED.updated_at
  RETURNING workflow.owner_xid, workflow.name, workflow.class_name, workflow.config_name, workflow.queue_name
  INTO found;

  -- Only the call that created the workflow gives it its input. A row that is there already was left by a
  -- deleted workflow of the same ID.
  IF found.owner_xid = token THEN
    INSERT INTO {schema}.workflow_input (workflow_uuid, inputs, retention_timestamp)
    VALUES (id, input, now_ms)
    ON CONFLICT (workflow_uuid) DO UPDATE
    SET inputs = EXCLUDED.inputs, retention_timestamp = EXCLUDED.retention_timestamp;

    place := CASE
      WHEN enqueue_workflow.queue_partition_key IS NULL THEN json_build_array(enqueue_workflow.queue_name)
      ELSE json_build_array(enqueue_workflow.queue_name, enqueue_workflow.queue_partition_key)
    END::TEXT;
    IF octet_length(place) < 8000 THEN
      PERFORM pg_notify('everstep_queues', place);
    END IF;
    RETURN id;
  END IF;

  IF found.name IS DISTINCT FROM workflow_name THEN
    RAISE EXCEPTION 'DBOS workflow conflict' USING
      DETAIL = format('Workflow %s already exists: it runs %s, not %s', id, found.name, workflow_name),
      ERRCODE = 'invalid_parameter_value';
  END IF;
  IF COALESCE(found.class_name, '') <> COALESCE(enqueue_workflow.class_name, '') THEN
    RAISE EXCEPTION 'DBOS workflow conflict' USING
      DETAIL = format(
        'Workflow %s already exists: it belongs to class %s, not %s', id, found.class_name, enqueue_workflow.class_name
      ),
      ERRCODE = 'invalid_parameter_value';
  END IF;
  IF COALESCE(found.config_name, '') <> COALESCE(enqueue_workflow.config_name, '') THEN
    RAISE EXCEPTION 'DBOS workflow conflict' USING
      DETAIL = format(
        'Workflow %s already exists: it belongs to instance %s, not %s',
        id, found.config_name, enqueue_workflow.config_name
      ),
      ERRCODE = 'invalid_parameter_value';
  END IF;
  IF found.queue_name <> enqueue_workflow.queue_name THEN
    RAISE WARNING 'Workflow % already exists in queue %; it was not enqueued in %',
      id, found.queue_name, enqueue_workflow.queue_name;
  END IF;
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
DECLARE
  -- As DBOS.send makes it: where it could be split in two ways, the length of the key is added.
  id TEXT := message_id || '::' || destination_id;
BEGIN
  IF strpos(substr(id, strpos(id, '::') + 1), '::') > 0 THEN
    id := octet_length(message_id) || '::' || id;
  END IF;
  -- Earlier versions of this function stored the key alone.
  PERFORM 1
  FROM {schema}.notifications AS n
  WHERE n.message_uuid = message_id AND n.destination_uuid = destination_id;
  IF FOUND THEN
    RETURN;
  END IF;
  INSERT INTO {schema}.notifications (message_uuid, destination_uuid, topic, message, serialization)
  VALUES (
    COALESCE(id, gen_random_uuid()::TEXT),
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
`,
  },
  {
    number: 11,
    name: 'system_identity',
    isOnline: false,
    sql: `-- Tells this system database from others whose engines use the same application database. It has one row.
CREATE TABLE IF NOT EXISTS {schema}.system_identity (
  key TEXT PRIMARY KEY,
  id TEXT NOT NULL
);
INSERT INTO {schema}.system_identity (key, id)
VALUES ('system', replace(gen_random_uuid()::text, '-', ''))
ON CONFLICT DO NOTHING;
`,
  },
  {
    number: 12,
    name: 'latest_version',
    isOnline: true,
    sql: `-- online
-- Each claim looks for the latest version.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_application_versions_latest
  ON {schema}.application_versions (version_timestamp, version_id);
`,
  },
  {
    number: 13,
    name: 'owner_index',
    isOnline: true,
    sql: `-- online
-- The running workflows of an engine are found by its owner tokens, and the engines that own any by walking the index.
-- Tokens of other libraries have no dot.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_owner
  ON {schema}.workflow_status (owner_xid COLLATE "C")
  WHERE status = 'PENDING' AND owner_xid LIKE '%.%';
`,
  },
  {
    number: 14,
    name: 'notify_of_other_programs',
    isOnline: false,
    sql: `-- Programs that do not send Everstep's notifications (DBOS, plain SQL) change rows that its engines wait for. Triggers send
-- the notifications for them. They skip sessions that set everstep.quiet, which are Everstep's own, and never fail the
-- statement of the other program.
-- if listen_notify
-- Creating a trigger waits for the transactions that write to the table, and new ones wait behind it. Give up and retry instead.
SET LOCAL lock_timeout = '3s';

CREATE OR REPLACE FUNCTION {schema}.everstep_notify_of_workflow() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  id TEXT := COALESCE(NEW.workflow_uuid, OLD.workflow_uuid);
  queue TEXT;
  partition_key TEXT;
  place JSON;
  sent INTEGER;
BEGIN
  -- DBOS before version 5 leaves the owner token in the row when it enqueues and claims. Everstep would take the workflow
  -- for its own.
  IF NEW.owner_xid LIKE '%.%' AND NEW.owner_xid = OLD.owner_xid AND NEW.status <> OLD.status
    AND NEW.status IN ('ENQUEUED', 'DELAYED', 'PENDING') THEN
    BEGIN
      UPDATE {schema}.workflow_status AS w
      SET owner_xid = NULL
      WHERE w.workflow_uuid = NEW.workflow_uuid AND w.owner_xid = NEW.owner_xid;
    EXCEPTION
      WHEN OTHERS THEN
        NULL;
    END;
  END IF;

  -- With a full queue of notifications, the commit would fail.
  IF pg_notification_queue_usage() > 0.5 THEN
    RETURN NULL;
  END IF;
  BEGIN
    -- A transaction that changes more rows than this sends notifications without IDs, which Postgres sends once.
    sent := COALESCE(NULLIF(current_setting('everstep.notified', TRUE), ''), '0')::INTEGER;
    IF sent >= 1000 OR octet_length(id) >= 8000 THEN
      id := '';
    END IF;
    IF sent < 1000 THEN
      PERFORM set_config('everstep.notified', (sent + 1)::TEXT, TRUE);
    END IF;

    IF NEW.status = 'ENQUEUED' THEN
      queue := NEW.queue_name;
      partition_key := NEW.queue_partition_key;
    ELSIF OLD.status = 'PENDING' AND NEW.status IS DISTINCT FROM 'PENDING' THEN
      -- Its slot is free.
      queue := OLD.queue_name;
      partition_key := OLD.queue_partition_key;
    END IF;
    IF queue IS NOT NULL THEN
      place := CASE
        WHEN partition_key IS NULL OR sent >= 1000 OR octet_length(partition_key) > 1000 THEN json_build_array(queue)
        ELSE json_build_array(queue, partition_key)
      END;
      IF octet_length(place::TEXT) < 8000 THEN
        PERFORM pg_notify('everstep_queues', place::TEXT);
      END IF;
    END IF;
    IF NEW.status = 'DELAYED' THEN
      PERFORM pg_notify('everstep_delays', '');
    END IF;
    IF OLD.status = 'PENDING' AND OLD.owner_xid LIKE '%.%'
      AND (NEW.status IS DISTINCT FROM OLD.status OR NEW.owner_xid IS DISTINCT FROM OLD.owner_xid) THEN
      PERFORM pg_notify('everstep_changes', id);
    END IF;
    IF OLD.status IN ('ENQUEUED', 'DELAYED', 'PENDING')
      AND COALESCE(NEW.status, 'DELETED') NOT IN ('ENQUEUED', 'DELAYED', 'PENDING') THEN
      PERFORM pg_notify('everstep_outcomes', id);
    END IF;
  EXCEPTION
    WHEN OTHERS THEN
      -- Engines also look without being told.
      NULL;
  END;
  RETURN NULL;
END;
$body$;

-- Row triggers: a transition table would copy the rows of Everstep's own statements, too. Their conditions are evaluated
-- before anything is called or queued.
CREATE OR REPLACE TRIGGER everstep_workflow_inserted
AFTER INSERT ON {schema}.workflow_status
FOR EACH ROW
WHEN (current_setting('everstep.quiet', TRUE) IS DISTINCT FROM 'on' AND NEW.status IN ('ENQUEUED', 'DELAYED'))
EXECUTE FUNCTION {schema}.everstep_notify_of_workflow();

CREATE OR REPLACE TRIGGER everstep_workflow_updated
AFTER UPDATE ON {schema}.workflow_status
FOR EACH ROW
WHEN (current_setting('everstep.quiet', TRUE) IS DISTINCT FROM 'on' AND (
  OLD.status IS DISTINCT FROM NEW.status
  OR OLD.owner_xid IS DISTINCT FROM NEW.owner_xid
  OR OLD.delay_until_epoch_ms IS DISTINCT FROM NEW.delay_until_epoch_ms
  OR OLD.queue_name IS DISTINCT FROM NEW.queue_name
  OR OLD.queue_partition_key IS DISTINCT FROM NEW.queue_partition_key
))
EXECUTE FUNCTION {schema}.everstep_notify_of_workflow();

CREATE OR REPLACE TRIGGER everstep_workflow_deleted
AFTER DELETE ON {schema}.workflow_status
FOR EACH ROW
WHEN (
  current_setting('everstep.quiet', TRUE) IS DISTINCT FROM 'on' AND OLD.status IN ('ENQUEUED', 'DELAYED', 'PENDING')
)
EXECUTE FUNCTION {schema}.everstep_notify_of_workflow();

CREATE OR REPLACE FUNCTION {schema}.everstep_notify_of_schedule() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  name TEXT := COALESCE(NEW.schedule_name, OLD.schedule_name);
BEGIN
  IF pg_notification_queue_usage() > 0.5 THEN
    RETURN NULL;
  END IF;
  IF octet_length(name) >= 8000 OR NEW.schedule_name <> OLD.schedule_name THEN
    name := '';
  END IF;
  PERFORM pg_notify('everstep_schedules', name);
  RETURN NULL;
EXCEPTION
  WHEN OTHERS THEN
    RETURN NULL;
END;
$body$;

-- Not the time of the last firing, which changes with each one.
CREATE OR REPLACE TRIGGER everstep_schedule_changed
AFTER INSERT OR DELETE OR UPDATE OF
  schedule_id, schedule_name, workflow_name, workflow_class_name, schedule, status, context, automatic_backfill,
  cron_timezone, queue_name, application_name
ON {schema}.workflow_schedules
FOR EACH ROW
WHEN (current_setting('everstep.quiet', TRUE) IS DISTINCT FROM 'on')
EXECUTE FUNCTION {schema}.everstep_notify_of_schedule();

CREATE OR REPLACE FUNCTION {schema}.everstep_notify_of_queues() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
  IF pg_notification_queue_usage() <= 0.5 THEN
    PERFORM pg_notify('everstep_queue_changes', '');
  END IF;
  RETURN NULL;
EXCEPTION
  WHEN OTHERS THEN
    RETURN NULL;
END;
$body$;

CREATE OR REPLACE TRIGGER everstep_queues_changed
AFTER INSERT OR UPDATE OR DELETE ON {schema}.queues
FOR EACH STATEMENT
WHEN (current_setting('everstep.quiet', TRUE) IS DISTINCT FROM 'on')
EXECUTE FUNCTION {schema}.everstep_notify_of_queues();
-- end if
`,
  },
  {
    number: 15,
    name: 'enqueue_for_all_readers',
    isOnline: false,
    sql: `-- enqueue_workflow stores the input in both places: DBOS 4 reads workflow_status only, and DBOS 5 may have left the input of a
-- deleted workflow of the same ID in workflow_input, where it looks first.
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
  delay_until_epoch_ms BIGINT DEFAULT NULL,
  application_name TEXT DEFAULT NULL
) RETURNS TEXT
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  id TEXT := COALESCE(workflow_id, gen_random_uuid()::TEXT);
  token TEXT := gen_random_uuid()::TEXT;
  found RECORD;
  now_ms BIGINT := (EXTRACT(EPOCH FROM now()) * 1000.0)::BIGINT;
  input TEXT := json_build_object('positionalArgs', positional_args, 'namedArgs', named_args)::TEXT;
  place TEXT;
  roles JSON;
  -- About 30,000 years, as in the library.
  longest_ms CONSTANT BIGINT := 1000000000000000;
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
  IF delay_until_epoch_ms > longest_ms THEN
    RAISE EXCEPTION 'delay_until_epoch_ms must be <= %', longest_ms;
  END IF;
  IF timeout_ms NOT BETWEEN -longest_ms AND longest_ms THEN
    RAISE EXCEPTION 'timeout_ms must be <= %', longest_ms;
  END IF;
  IF deadline_epoch_ms NOT BETWEEN 0 AND longest_ms THEN
    RAISE EXCEPTION 'deadline_epoch_ms must be between 0 and %', longest_ms;
  END IF;
  IF authenticated_roles <> '' THEN
    BEGIN
      roles := authenticated_roles::JSON;
    EXCEPTION
      WHEN data_exception THEN
        roles := 'null'::JSON;
    END;
    IF json_typeof(roles) <> 'array' THEN
      RAISE EXCEPTION 'authenticated_roles must be a JSON array of strings, such as ["admin"]';
    END IF;
    IF EXISTS (SELECT 1 FROM json_array_elements(roles) AS listed(role) WHERE json_typeof(listed.role) <> 'string') THEN
      RAISE EXCEPTION 'authenticated_roles must be a JSON array of strings, such as ["admin"]';
    END IF;
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
    delay_until_epoch_ms,
    application_name
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
    enqueue_workflow.delay_until_epoch_ms,
    enqueue_workflow.application_name
  )
  ON CONFLICT (workflow_uuid) DO UPDATE SET updated_at = EXCLUDED.updated_at
  RETURNING workflow.owner_xid, workflow.name, workflow.class_name, workflow.config_name, workflow.queue_name
  INTO found;

  -- Only the call that created the workflow gives it its input. A row that is there already was left by a
  -- deleted workflow of the same ID.
  IF found.owner_xid = token THEN
    INSERT INTO {schema}.workflow_input (workflow_uuid, inputs, retention_timestamp)
    VALUES (id, input, now_ms)
    ON CONFLICT (workflow_uuid) DO UPDATE
    SET inputs = EXCLUDED.inputs, retention_timestamp = EXCLUDED.retention_timestamp;

    place := CASE
      WHEN enqueue_workflow.queue_partition_key IS NULL THEN json_build_array(enqueue_workflow.queue_name)
      ELSE json_build_array(enqueue_workflow.queue_name, enqueue_workflow.queue_partition_key)
    END::TEXT;
    IF octet_length(place) < 8000 THEN
      PERFORM pg_notify('everstep_queues', place);
    END IF;
    RETURN id;
  END IF;

  IF found.name IS DISTINCT FROM workflow_name THEN
    RAISE EXCEPTION 'DBOS workflow conflict' USING
      DETAIL = format('Workflow %s already exists: it runs %s, not %s', id, found.name, workflow_name),
      ERRCODE = 'invalid_parameter_value';
  END IF;
  IF COALESCE(found.class_name, '') <> COALESCE(enqueue_workflow.class_name, '') THEN
    RAISE EXCEPTION 'DBOS workflow conflict' USING
      DETAIL = format(
        'Workflow %s already exists: it belongs to class %s, not %s', id, found.class_name, enqueue_workflow.class_name
      ),
      ERRCODE = 'invalid_parameter_value';
  END IF;
  IF COALESCE(found.config_name, '') <> COALESCE(enqueue_workflow.config_name, '') THEN
    RAISE EXCEPTION 'DBOS workflow conflict' USING
      DETAIL = format(
        'Workflow %s already exists: it belongs to instance %s, not %s',
        id, found.config_name, enqueue_workflow.config_name
      ),
      ERRCODE = 'invalid_parameter_value';
  END IF;
  IF found.queue_name <> enqueue_workflow.queue_name THEN
    RAISE WARNING 'Workflow % already exists in queue %; it was not enqueued in %',
      id, found.queue_name, enqueue_workflow.queue_name;
  END IF;
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
`,
  },
  {
    number: 16,
    name: 'journal',
    isOnline: false,
    sql: `-- The journal: what happened to workflows and is not, or no longer, in the other tables. Rows are only ever added, and go
-- with their workflow. Triggers add those about changes of state, whichever program makes them; runs add the others.
CREATE TABLE IF NOT EXISTS {schema}.journal (
  workflow_id TEXT NOT NULL
    REFERENCES {schema}.workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  seq BIGINT GENERATED ALWAYS AS IDENTITY,
  at BIGINT NOT NULL DEFAULT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT,
  -- Readers that follow the journal wait until no older transaction can still add a row.
  xid XID8 NOT NULL DEFAULT pg_current_xact_id(),
  event_type TEXT NOT NULL,
  step INTEGER,
  attempt INTEGER,
  executor TEXT,
  actor TEXT,
  details JSONB,
  -- Tells a row that is written again from a new one, and a stored event from the same one in the other tables.
  key TEXT,
  PRIMARY KEY (workflow_id, seq)
);

CREATE INDEX IF NOT EXISTS idx_journal_at ON {schema}.journal (at);
CREATE INDEX IF NOT EXISTS idx_journal_xid ON {schema}.journal (xid, seq);
CREATE UNIQUE INDEX IF NOT EXISTS uq_journal_key ON {schema}.journal (workflow_id, key) WHERE key IS NOT NULL;

CREATE OR REPLACE FUNCTION {schema}.everstep_guard_journal() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
  IF TG_OP = 'DELETE' THEN
    IF current_setting('everstep.prune', TRUE) = 'on'
      OR NOT EXISTS (SELECT 1 FROM {schema}.workflow_status AS w WHERE w.workflow_uuid = OLD.workflow_id) THEN
      RETURN OLD;
    END IF;
  ELSIF TG_OP = 'UPDATE' THEN
    -- A workflow was given another ID.
    IF OLD.workflow_id <> NEW.workflow_id AND OLD.seq = NEW.seq AND OLD.at = NEW.at AND OLD.event_type = NEW.event_type
      AND OLD.details IS NOT DISTINCT FROM NEW.details AND OLD.actor IS NOT DISTINCT FROM NEW.actor THEN
      RETURN NEW;
    END IF;
  END IF;
  RAISE EXCEPTION 'The history of workflows is append-only.' USING ERRCODE = 'object_not_in_prerequisite_state';
END;
$body$;

-- Creating a trigger waits for the transactions that write to the table, and new ones wait behind it. Give up and retry instead.
SET LOCAL lock_timeout = '3s';

CREATE OR REPLACE TRIGGER everstep_journal_kept
BEFORE UPDATE OR DELETE ON {schema}.journal
FOR EACH ROW EXECUTE FUNCTION {schema}.everstep_guard_journal();

CREATE OR REPLACE TRIGGER everstep_journal_not_truncated
BEFORE TRUNCATE ON {schema}.journal
FOR EACH STATEMENT EXECUTE FUNCTION {schema}.everstep_guard_journal();

-- With the rights of its owner: another program's role need not know the journal.
CREATE OR REPLACE FUNCTION {schema}.everstep_journal_change() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  -- What the caller says about the change: its source, a reason and an actor.
  note JSONB := NULLIF(current_setting('everstep.change', TRUE), '')::JSONB;
  now_ms BIGINT := FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT;
  changed_at BIGINT := CASE WHEN NEW.updated_at <> OLD.updated_at THEN NEW.updated_at ELSE now_ms END;
  source TEXT := note ->> 'source';
  kind TEXT;
  facts JSONB;
BEGIN
  IF NEW.status = 'CANCELLED' AND OLD.status IS DISTINCT FROM 'CANCELLED' THEN
    source := COALESCE(source, CASE WHEN NEW.workflow_deadline_epoch_ms <= changed_at THEN 'deadline' ELSE 'api' END);
    kind := CASE WHEN source = 'deadline' THEN 'WorkflowTimedOut' ELSE 'WorkflowCancelRequested' END;
    facts := jsonb_build_object('from_status', OLD.status, 'queue', OLD.queue_name, 'started_at', OLD.started_at_epoch_ms);
    IF source = 'deadline' THEN
      facts := facts || jsonb_build_object(
        'deadline', NEW.workflow_deadline_epoch_ms, 'timeout_seconds', NEW.workflow_timeout_ms / 1000.0);
    END IF;
  ELSIF NEW.status = 'MAX_RECOVERY_ATTEMPTS_EXCEEDED' AND OLD.status IS DISTINCT FROM NEW.status THEN
    kind := 'WorkflowDeadLettered';
    facts := jsonb_build_object('attempts', OLD.recovery_attempts, 'queue', OLD.queue_name);
  ELSIF source = 'resume' OR source = 'rewind' OR OLD.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING') THEN
    source := COALESCE(source, CASE WHEN OLD.status IN ('SUCCESS', 'ERROR') THEN 'rewind' ELSE 'resume' END);
    kind := CASE WHEN source = 'rewind' THEN 'WorkflowRewound' ELSE 'WorkflowResumed' END;
    facts := jsonb_build_object('from_status', OLD.status, 'queue', NEW.queue_name, 'attempts', OLD.recovery_attempts,
      'completed_at', OLD.completed_at, 'error', OLD.error, 'start_step', note -> 'startStep');
  ELSIF OLD.status = 'PENDING' AND NEW.status = 'DELAYED' THEN
    kind := 'WorkflowTaskYielded';
    facts := jsonb_build_object('until', NEW.delay_until_epoch_ms, 'started_at', OLD.started_at_epoch_ms);
  ELSIF OLD.status = 'PENDING' AND NEW.status = 'ENQUEUED' THEN
    kind := 'AttemptLost';
    source := COALESCE(source, 'recovery');
    facts := jsonb_build_object('started_at', OLD.started_at_epoch_ms, 'version', OLD.application_version);
  ELSIF OLD.delay_until_epoch_ms IS DISTINCT FROM NEW.delay_until_epoch_ms THEN
    kind := 'DelayChanged';
    facts := jsonb_build_object('from', OLD.delay_until_epoch_ms, 'to', NEW.delay_until_epoch_ms);
  ELSE
    kind := 'PriorityChanged';
    facts := jsonb_build_object('from', OLD.priority, 'to', NEW.priority);
  END IF;
  INSERT INTO {schema}.journal (workflow_id, at, event_type, attempt, executor, actor, details)
  VALUES (
    NEW.workflow_uuid, changed_at, kind,
    CASE WHEN OLD.status = 'PENDING' THEN OLD.recovery_attempts::INTEGER END,
    CASE WHEN OLD.status = 'PENDING' THEN OLD.executor_id END,
    note ->> 'actor',
    jsonb_strip_nulls(facts || jsonb_build_object('source', source, 'reason', note ->> 'reason')));
  RETURN NULL;
END;
$body$;

-- The condition is evaluated before anything is called or queued. A workflow that just runs does not meet it.
CREATE OR REPLACE TRIGGER everstep_workflow_journaled
AFTER UPDATE ON {schema}.workflow_status
FOR EACH ROW
WHEN (
  (OLD.status IS DISTINCT FROM NEW.status AND (
    NEW.status IN ('CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED')
    OR (OLD.status = 'PENDING' AND NEW.status IN ('ENQUEUED', 'DELAYED'))
    OR (OLD.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING') AND NEW.status IN ('ENQUEUED', 'DELAYED', 'PENDING'))))
  OR (OLD.status IN ('ENQUEUED', 'DELAYED') AND NEW.status IN ('ENQUEUED', 'DELAYED')
    AND OLD.delay_until_epoch_ms IS DISTINCT FROM NEW.delay_until_epoch_ms)
  OR (OLD.priority <> NEW.priority AND NEW.status IN ('ENQUEUED', 'DELAYED', 'PENDING'))
)
EXECUTE FUNCTION {schema}.everstep_journal_change();

CREATE OR REPLACE FUNCTION {schema}.everstep_journal_fork() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  note JSONB := NULLIF(current_setting('everstep.change', TRUE), '')::JSONB;
BEGIN
  INSERT INTO {schema}.journal (workflow_id, at, event_type, actor, details)
  SELECT w.workflow_uuid, NEW.created_at, 'WorkflowForked', note ->> 'actor', jsonb_strip_nulls(jsonb_build_object(
    'new_id', NEW.workflow_uuid, 'version', NEW.application_version, 'reason', note ->> 'reason'))
  FROM {schema}.workflow_status AS w
  WHERE w.workflow_uuid = NEW.forked_from;
  RETURN NULL;
END;
$body$;

CREATE OR REPLACE TRIGGER everstep_fork_journaled
AFTER INSERT ON {schema}.workflow_status
FOR EACH ROW
WHEN (NEW.forked_from IS NOT NULL)
EXECUTE FUNCTION {schema}.everstep_journal_fork();
`,
  },
  {
    number: 17,
    name: 'history_views',
    isOnline: false,
    sql: `-- The history of workflows: the rows of the journal, and the events that follow from the other tables.
CREATE TABLE IF NOT EXISTS {schema}.journal_timers (
  timer_id TEXT PRIMARY KEY,
  workflow_id TEXT NOT NULL
    REFERENCES {schema}.workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  fire_at BIGINT NOT NULL,
  fired BOOLEAN NOT NULL DEFAULT FALSE,
  created_at BIGINT NOT NULL DEFAULT FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT
);
CREATE INDEX IF NOT EXISTS idx_journal_timers_pending ON {schema}.journal_timers (fire_at) WHERE NOT fired;
CREATE INDEX IF NOT EXISTS idx_journal_timers_workflow ON {schema}.journal_timers (workflow_id);

-- A stored value as plain JSON. A text that is none, such as that of a custom serializer, becomes a string.
CREATE OR REPLACE FUNCTION {schema}.everstep_json(value TEXT) RETURNS JSONB
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  parsed JSONB;
BEGIN
  parsed := value::JSONB;
  IF jsonb_typeof(parsed) = 'object' AND parsed ? '__dbos_serializer' THEN
    RETURN parsed -> 'json';
  END IF;
  RETURN parsed;
EXCEPTION
  WHEN OTHERS THEN
    RETURN to_jsonb(value);
END;
$body$;

CREATE OR REPLACE VIEW {schema}.history AS
SELECT j.workflow_id, CASE WHEN j.key = 'started' THEN 0 ELSE 1 END AS phase, j.at, j.step,
  CASE WHEN j.step IS NOT NULL AND j.event_type IN ('ActivityScheduled', 'TimerScheduled') THEN 0 ELSE 1 END AS part,
  j.seq, j.event_type, j.attempt, j.executor, j.actor, j.details,
  CASE
    WHEN j.key = 'started' THEN 'input'
    WHEN w.status = 'SUCCESS' OR (o.function_id IS NOT NULL AND o.error IS NULL) THEN 'result'
    WHEN w.status = 'ERROR' OR o.error IS NOT NULL THEN 'error'
  END AS payload_name,
  CASE
    WHEN j.key = 'started' THEN w.inputs
    WHEN w.workflow_uuid IS NOT NULL THEN COALESCE(w.output, w.error)
    ELSE COALESCE(o.output, o.error)
  END AS payload,
  COALESCE(w.serialization, o.serialization) AS serialization, j.key
FROM {schema}.journal AS j
LEFT JOIN {schema}.operation_outputs AS o
  ON o.workflow_uuid = j.workflow_id AND o.function_id = j.step AND j.event_type IN ('ActivityCompleted', 'ActivityFailed')
  AND j.key = 'step:' || o.function_id || ':done:' || COALESCE(o.completed_at_epoch_ms, 0)
LEFT JOIN {schema}.workflow_status AS w
  ON w.workflow_uuid = j.workflow_id AND (j.key = 'started' OR j.key = 'outcome:' || w.owner_xid)
UNION ALL
SELECT d.workflow_id, d.phase, d.at, d.step, d.part, NULL::BIGINT AS seq, d.event_type, d.attempt, d.executor, NULL AS actor,
  d.details, d.payload_name, d.payload, d.serialization, d.key
FROM (
  SELECT w.workflow_uuid AS workflow_id, 0 AS phase, w.created_at AS at, NULL::INTEGER AS step, 0 AS part,
    'WorkflowStarted' AS event_type, NULL::INTEGER AS attempt, NULL AS executor,
    jsonb_strip_nulls(jsonb_build_object(
      'workflow_name', w.name, 'class_name', NULLIF(w.class_name, ''), 'config_name', NULLIF(w.config_name, ''),
      'queue', w.queue_name, 'priority', w.priority, 'partition_key', w.queue_partition_key,
      'timeout_ms', w.workflow_timeout_ms, 'parent_id', w.parent_workflow_id, 'forked_from', w.forked_from,
      'schedule', w.schedule_name, 'version', w.application_version)) AS details,
    'input' AS payload_name, COALESCE(w.inputs, i.inputs) AS payload, w.serialization, 'started' AS key
  FROM {schema}.workflow_status AS w
  LEFT JOIN {schema}.workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
  UNION ALL
  SELECT w.workflow_uuid, 1, w.started_at_epoch_ms, NULL, 0, 'AttemptStarted', w.recovery_attempts::INTEGER, w.executor_id,
    jsonb_strip_nulls(jsonb_build_object('version', w.application_version, 'queue', w.queue_name)), NULL, NULL, NULL,
    'attempt:' || w.owner_xid
  FROM {schema}.workflow_status AS w
  WHERE w.started_at_epoch_ms IS NOT NULL AND w.status NOT IN ('ENQUEUED', 'DELAYED')
  UNION ALL
  SELECT o.workflow_uuid, 1,
    CASE
      WHEN p.part = 0 THEN COALESCE(o.started_at_epoch_ms, o.completed_at_epoch_ms, o.retention_timestamp)
      WHEN o.function_name = 'DBOS.sleep' THEN COALESCE(f.fire_at, o.completed_at_epoch_ms, o.retention_timestamp)
      ELSE COALESCE(o.completed_at_epoch_ms, o.retention_timestamp)
    END,
    o.function_id, p.part,
    CASE
      WHEN o.function_name = 'DBOS.sleep' THEN CASE WHEN p.part = 0 THEN 'TimerScheduled' ELSE 'TimerFired' END
      WHEN p.part = 0 THEN 'ActivityScheduled'
      WHEN o.function_name = 'DBOS.getResult' THEN 'ChildWorkflowCompleted'
      WHEN o.child_workflow_id IS NOT NULL AND o.function_name NOT LIKE 'DBOS.%' THEN 'ChildWorkflowStarted'
      WHEN o.function_name = 'DBOS.recv' THEN CASE
        WHEN o.output IS NULL OR o.output = 'null' OR o.output LIKE '{"json":null%' THEN 'ReceiveTimedOut' ELSE 'MessageConsumed' END
      WHEN o.function_name = 'DBOS.setEvent' THEN 'EventSet'
      WHEN o.function_name = 'DBOS.closeStream' THEN 'StreamClosed'
      WHEN o.function_name LIKE 'DBOS.patch-%' THEN 'WorkflowPatched'
      WHEN o.function_name LIKE 'DBOS.%' THEN 'OperationCompleted'
      WHEN o.error IS NOT NULL THEN 'ActivityFailed'
      ELSE 'ActivityCompleted'
    END,
    NULL, NULL,
    CASE
      WHEN o.function_name = 'DBOS.sleep' THEN jsonb_build_object(
        'timer_id', o.workflow_uuid || ':' || o.function_id,
        CASE WHEN p.part = 0 THEN 'fire_at' ELSE 'fired_at' END, to_timestamp(f.fire_at / 1000.0))
      WHEN p.part = 0 THEN jsonb_build_object('activity_name', o.function_name, 'input', NULL)
      WHEN o.child_workflow_id IS NOT NULL THEN jsonb_build_object('child_id', o.child_workflow_id, 'name', o.function_name)
      WHEN o.function_name = 'DBOS.setEvent' THEN jsonb_build_object('key', (
        SELECT h.key FROM {schema}.workflow_events_history AS h
        WHERE h.workflow_uuid = o.workflow_uuid AND h.function_id = o.function_id LIMIT 1))
      WHEN o.function_name LIKE 'DBOS.patch-%' THEN jsonb_build_object('patch', SUBSTR(o.function_name, 12))
      WHEN o.function_name LIKE 'DBOS.%' THEN jsonb_build_object('operation', o.function_name)
      ELSE jsonb_build_object('activity_name', o.function_name,
        'duration_ms', o.completed_at_epoch_ms - o.started_at_epoch_ms)
    END,
    CASE WHEN p.part = 1 AND o.function_name <> 'DBOS.sleep' THEN CASE WHEN o.error IS NULL THEN 'result' ELSE 'error' END END,
    CASE WHEN p.part = 1 AND o.function_name <> 'DBOS.sleep' THEN COALESCE(o.output, o.error) END,
    o.serialization,
    'step:' || o.function_id || CASE WHEN p.part = 0 THEN ':begun:' ELSE ':done:' END || COALESCE(o.completed_at_epoch_ms, 0)
  FROM {schema}.operation_outputs AS o
  -- A sleep records when it ends: a number, or superjson that contains it.
  CROSS JOIN LATERAL (SELECT CASE WHEN o.function_name = 'DBOS.sleep'
    THEN SUBSTRING(o.output FROM '[0-9]{10,15}')::BIGINT END AS fire_at) AS f
  JOIN (VALUES (0), (1)) AS p(part)
    ON (p.part = 1 OR o.function_name = 'DBOS.sleep'
      OR (o.function_name NOT LIKE 'DBOS.%' AND o.child_workflow_id IS NULL))
    -- The timer of a wait is recorded before it ends, and says nothing of how the wait ended.
    AND (p.part = 0 OR o.function_name <> 'DBOS.sleep' OR (o.completed_at_epoch_ms >= f.fire_at
      AND f.fire_at <= FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT))
  UNION ALL
  SELECT n.destination_uuid, 1, n.created_at_epoch_ms, NULL, 0, 'SignalReceived', NULL, NULL,
    jsonb_build_object('signal_name', NULLIF(n.topic, '__null__topic__'), 'message_id', n.message_uuid),
    'input', n.message, n.serialization, 'message:' || n.message_uuid
  FROM {schema}.notifications AS n
  UNION ALL
  SELECT w.workflow_uuid, 2, COALESCE(w.completed_at, w.updated_at), NULL, 0,
    CASE w.status WHEN 'SUCCESS' THEN 'WorkflowCompleted' WHEN 'ERROR' THEN 'WorkflowFailed' ELSE 'WorkflowCanceled' END,
    NULL, NULL, jsonb_build_object('duration_ms', COALESCE(w.completed_at, w.updated_at) - w.created_at),
    CASE w.status WHEN 'SUCCESS' THEN 'result' WHEN 'ERROR' THEN 'error' END,
    COALESCE(w.output, r.output, w.error, r.error), w.serialization, 'outcome:' || w.owner_xid
  FROM {schema}.workflow_status AS w
  LEFT JOIN {schema}.workflow_output AS r ON r.workflow_uuid = w.workflow_uuid
  WHERE w.status IN ('SUCCESS', 'ERROR') OR (w.status = 'CANCELLED' AND COALESCE((
    SELECT j.event_type FROM {schema}.journal AS j
    WHERE j.workflow_id = w.workflow_uuid AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
    ORDER BY j.seq DESC LIMIT 1), '') <> 'WorkflowTimedOut')
) AS d
-- Not NOT EXISTS: the planner would hash the whole journal for it.
WHERE (SELECT s.key FROM {schema}.journal AS s WHERE s.workflow_id = d.workflow_id AND s.key = d.key LIMIT 1) IS NULL;

CREATE OR REPLACE FUNCTION {schema}.everstep_delete_execution() RETURNS TRIGGER
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
  DELETE FROM {schema}.workflow_status AS w WHERE w.workflow_uuid = OLD.workflow_id;
  DELETE FROM {schema}.operation_outputs AS o WHERE o.workflow_uuid = OLD.workflow_id;
  DELETE FROM {schema}.workflow_input AS i WHERE i.workflow_uuid = OLD.workflow_id;
  DELETE FROM {schema}.workflow_output AS r WHERE r.workflow_uuid = OLD.workflow_id;
  RETURN OLD;
END;
$body$;

-- The same in the form of sched's tables, in a schema of their own. False if the role may not create schemas; then call it
-- with a role that may.
CREATE OR REPLACE FUNCTION {schema}.everstep_create_history() RETURNS BOOLEAN
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
  CREATE SCHEMA IF NOT EXISTS {history};

  CREATE OR REPLACE VIEW {history}.workflow_executions AS
  SELECT w.workflow_uuid AS workflow_id, COALESCE(w.creator_xid, w.workflow_uuid) AS run_id, w.name,
    CASE
      WHEN w.status IN ('ENQUEUED', 'DELAYED', 'PENDING') THEN 'RUNNING'
      WHEN w.status = 'SUCCESS' THEN 'COMPLETED'
      WHEN w.status <> 'CANCELLED' THEN 'FAILED'
      WHEN (
        SELECT j.event_type FROM {schema}.journal AS j
        WHERE j.workflow_id = w.workflow_uuid AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
        ORDER BY j.seq DESC LIMIT 1) = 'WorkflowTimedOut' THEN 'TIMED_OUT'
      ELSE 'CANCELED'
    END AS status,
    {schema}.everstep_json(COALESCE(w.inputs, i.inputs)) AS input,
    {schema}.everstep_json(COALESCE(w.output, r.output)) AS result,
    COALESCE(w.error, r.error) AS error,
    to_timestamp(w.created_at / 1000.0) AS start_time,
    to_timestamp(w.completed_at / 1000.0) AS end_time,
    -- Each transition moves to a later stage, or adds to the journal more than a step back takes away.
    (1 + CASE w.status WHEN 'DELAYED' THEN 0 WHEN 'ENQUEUED' THEN 1 WHEN 'PENDING' THEN 2 ELSE 3 END + COALESCE((
      SELECT SUM(CASE WHEN j.event_type IN ('AttemptLost', 'WorkflowResumed', 'WorkflowRewound', 'WorkflowTaskYielded', 'DelayChanged')
        THEN 4 ELSE 1 END)
      FROM {schema}.journal AS j WHERE j.workflow_id = w.workflow_uuid), 0))::INTEGER AS version
  FROM {schema}.workflow_status AS w
  LEFT JOIN {schema}.workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
  LEFT JOIN {schema}.workflow_output AS r ON r.workflow_uuid = w.workflow_uuid;

  CREATE OR REPLACE TRIGGER everstep_execution_deleted
  INSTEAD OF DELETE ON {history}.workflow_executions
  FOR EACH ROW EXECUTE FUNCTION {schema}.everstep_delete_execution();

  CREATE OR REPLACE VIEW {history}.workflow_events AS
  SELECT h.workflow_id,
    ROW_NUMBER() OVER (
      PARTITION BY h.workflow_id ORDER BY h.phase, h.at,
      CASE WHEN h.event_type = 'AttemptStarted' THEN -1 ELSE COALESCE(h.step, 2147483647) END, h.part, h.seq) AS idx,
    h.event_type, to_timestamp(h.at / 1000.0) AS timestamp,
    COALESCE(h.details, '{}'::JSONB) || CASE
      WHEN h.payload_name IS NULL THEN '{}'::JSONB
      ELSE jsonb_build_object(h.payload_name, {schema}.everstep_json(h.payload)) END AS details
  FROM {schema}.history AS h;

  CREATE OR REPLACE VIEW {history}.tasks AS
  SELECT COALESCE(w.owner_xid, w.creator_xid, '') || '/' || w.workflow_uuid AS task_token, w.workflow_uuid AS workflow_id,
    'WORKFLOW' AS kind, NULL::TEXT AS activity_name, {schema}.everstep_json(COALESCE(w.inputs, i.inputs)) AS input,
    CASE WHEN w.status = 'PENDING' THEN 'IN_FLIGHT' ELSE 'PENDING' END AS status,
    CASE WHEN w.status = 'PENDING' THEN w.owner_xid END AS claim_token,
    to_timestamp(e.lease_until_epoch_ms / 1000.0) AS visibility_timeout, to_timestamp(w.created_at / 1000.0) AS created_at
  FROM {schema}.workflow_status AS w
  LEFT JOIN {schema}.workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
  LEFT JOIN {schema}.executors AS e ON w.status = 'PENDING' AND e.incarnation_id = SPLIT_PART(w.owner_xid, '.', 1)
  WHERE w.status IN ('ENQUEUED', 'DELAYED', 'PENDING');

  CREATE OR REPLACE VIEW {history}.timers AS
  SELECT t.timer_id, t.workflow_id, to_timestamp(t.fire_at / 1000.0) AS fire_at,
    t.fired OR (t.kind <> 'own' AND t.fire_at <= FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT) AS fired,
    to_timestamp(t.created_at / 1000.0) AS created_at, t.kind
  FROM (
    SELECT m.timer_id, m.workflow_id, m.fire_at, m.fired, m.created_at, 'own' AS kind
    FROM {schema}.journal_timers AS m
    UNION ALL
    SELECT o.workflow_uuid || ':' || o.function_id, o.workflow_uuid, SUBSTRING(o.output FROM '[0-9]{10,15}')::BIGINT, FALSE,
      COALESCE(o.started_at_epoch_ms, o.retention_timestamp), 'sleep'
    FROM {schema}.workflow_status AS w
    JOIN {schema}.operation_outputs AS o ON o.workflow_uuid = w.workflow_uuid AND o.function_name = 'DBOS.sleep'
    WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED')
    UNION ALL
    SELECT w.workflow_uuid || ':delay', w.workflow_uuid, w.delay_until_epoch_ms, FALSE, w.created_at, 'delay'
    FROM {schema}.workflow_status AS w
    WHERE w.status = 'DELAYED' AND w.delay_until_epoch_ms IS NOT NULL
    UNION ALL
    SELECT w.workflow_uuid || ':deadline', w.workflow_uuid, w.workflow_deadline_epoch_ms, FALSE,
      COALESCE(w.started_at_epoch_ms, w.created_at), 'deadline'
    FROM {schema}.workflow_status AS w
    WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND w.workflow_deadline_epoch_ms IS NOT NULL
  ) AS t;
  RETURN TRUE;
EXCEPTION
  WHEN insufficient_privilege THEN
    RETURN FALSE;
END;
$body$;

SELECT {schema}.everstep_create_history();
`,
  },
  {
    number: 18,
    name: 'parked_waits',
    isOnline: false,
    sql: `-- What parked workflows wait for besides a time. Triggers wake them in the commit that brings it, whatever program that is
-- of, so that no wake-up is lost. A workflow parks with a lock on the row that such a commit has to lock as well:
-- its own for a message, that of the other workflow for an event or an outcome.
SET LOCAL lock_timeout = '3s';

CREATE TABLE IF NOT EXISTS {schema}.parked_waits (
  wait_key TEXT NOT NULL,
  workflow_uuid TEXT NOT NULL
    REFERENCES {schema}.workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  kind TEXT NOT NULL,
  awaited_uuid TEXT NOT NULL,
  awaited_name TEXT,
  PRIMARY KEY (wait_key, workflow_uuid)
);
CREATE INDEX IF NOT EXISTS idx_parked_waits_workflow ON {schema}.parked_waits (workflow_uuid);

-- A workflow whose outcome no parked workflow waits for costs its end nothing.
ALTER TABLE {schema}.workflow_status ADD COLUMN IF NOT EXISTS has_parked_waiter BOOLEAN;

-- With the rights of the owner: who may send a message need not have those to wake its receiver. Without sequential scans:
-- a plan that was made while the table was small is kept.
CREATE OR REPLACE FUNCTION {schema}.everstep_wake_parked(keys TEXT[]) RETURNS VOID
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
DECLARE
  woken RECORD;
BEGIN
  FOR woken IN
    WITH waits AS (
      DELETE FROM {schema}.parked_waits AS p WHERE p.wait_key = ANY (keys) RETURNING p.workflow_uuid
    ), roused AS (
      UPDATE {schema}.workflow_status AS w
      SET status = 'ENQUEUED'
      WHERE w.workflow_uuid IN (SELECT waits.workflow_uuid FROM waits)
        AND CASE WHEN w.status = 'DELAYED' AND w.owner_xid LIKE '%.%' THEN TRUE ELSE FALSE END
      RETURNING w.queue_name, w.queue_partition_key
    )
    SELECT DISTINCT roused.queue_name AS queue, roused.queue_partition_key AS partition_key FROM roused
  LOOP
    NULL;
-- if listen_notify
    IF pg_notification_queue_usage() <= 0.5 AND octet_length(woken.queue) + octet_length(COALESCE(woken.partition_key, '')) < 1000 THEN
      PERFORM pg_notify('everstep_queues', CASE
        WHEN woken.partition_key IS NULL THEN json_build_array(woken.queue)
        ELSE json_build_array(woken.queue, woken.partition_key)
      END::TEXT);
    END IF;
-- end if
  END LOOP;
END;
$body$;
REVOKE ALL ON FUNCTION {schema}.everstep_wake_parked(TEXT[]) FROM PUBLIC;

CREATE OR REPLACE FUNCTION {schema}.everstep_wake_receivers() RETURNS TRIGGER
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
DECLARE
  keys TEXT[] := ARRAY(
    SELECT p.wait_key
    FROM {schema}.parked_waits AS p
    WHERE p.wait_key = ANY (ARRAY(SELECT 'message:' || s.destination_uuid || '::' || s.topic FROM sent AS s))
  );
BEGIN
  IF cardinality(keys) > 0 THEN
    PERFORM {schema}.everstep_wake_parked(keys);
  END IF;
  RETURN NULL;
END;
$body$;

CREATE OR REPLACE FUNCTION {schema}.everstep_wake_event_readers() RETURNS TRIGGER
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
DECLARE
  keys TEXT[] := ARRAY(
    SELECT p.wait_key
    FROM {schema}.parked_waits AS p
    WHERE p.wait_key = ANY (ARRAY(SELECT 'event:' || s.workflow_uuid || '::' || s.key FROM events AS s))
  );
BEGIN
  IF cardinality(keys) > 0 THEN
    PERFORM {schema}.everstep_wake_parked(keys);
  END IF;
  RETURN NULL;
END;
$body$;

CREATE OR REPLACE FUNCTION {schema}.everstep_wake_result_waiters() RETURNS TRIGGER
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
  PERFORM {schema}.everstep_wake_parked(ARRAY['outcome:' || NEW.workflow_uuid]);
  RETURN NULL;
END;
$body$;

-- Once per statement, and after the check of the foreign key, which waits for a receiver that is parking.
CREATE OR REPLACE TRIGGER everstep_wake_receivers
AFTER INSERT ON {schema}.notifications
REFERENCING NEW TABLE AS sent
FOR EACH STATEMENT
EXECUTE FUNCTION {schema}.everstep_wake_receivers();

-- An event that had a value before has woken its readers with that.
CREATE OR REPLACE TRIGGER everstep_wake_event_readers
AFTER INSERT ON {schema}.workflow_events
REFERENCING NEW TABLE AS events
FOR EACH STATEMENT
EXECUTE FUNCTION {schema}.everstep_wake_event_readers();

CREATE OR REPLACE TRIGGER everstep_wake_result_waiters
AFTER UPDATE ON {schema}.workflow_status
FOR EACH ROW
WHEN (OLD.has_parked_waiter
  AND OLD.status IN ('ENQUEUED', 'DELAYED', 'PENDING')
  AND NEW.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING'))
EXECUTE FUNCTION {schema}.everstep_wake_result_waiters();
`,
  },
  {
    number: 19,
    name: 'step_attempts',
    isOnline: false,
    sql: `-- The failed attempts of steps that are retried, so that the next process continues the count and the backoff.
CREATE TABLE IF NOT EXISTS {schema}.step_attempts (
  workflow_uuid TEXT NOT NULL
    REFERENCES {schema}.workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  function_id INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  retry_at_epoch_ms BIGINT NOT NULL,
  errors TEXT NOT NULL,
  PRIMARY KEY (workflow_uuid, function_id)
);
`,
  },
  {
    number: 20,
    name: 'archived_workflows',
    isOnline: false,
    sql: `-- Where the workflows are that retention has archived and deleted: the object of the archive that holds each.
CREATE TABLE IF NOT EXISTS {schema}.archived_workflows (
  workflow_uuid TEXT PRIMARY KEY,
  object_name TEXT NOT NULL,
  archived_at BIGINT NOT NULL
);
`,
  },
  {
    number: 21,
    name: 'claim_indexes',
    isOnline: true,
    sql: `-- online
-- Claims read the workflows that wait in a queue, or in one of its partitions, in their order: those of a version, and those
-- of none. The conditions are written so that no other statement sees its own in them.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_claims
  ON {schema}.workflow_status
    (queue_name, (COALESCE(application_version, '')), priority, created_at, creator_xid, workflow_uuid)
  WHERE CASE WHEN status = 'ENQUEUED' THEN TRUE ELSE FALSE END;
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_partition_claims
  ON {schema}.workflow_status
    (queue_name, queue_partition_key, (COALESCE(application_version, '')), priority, created_at, creator_xid, workflow_uuid)
  WHERE CASE WHEN status = 'ENQUEUED' AND queue_partition_key IS NOT NULL THEN TRUE ELSE FALSE END;
`,
  },
  {
    number: 22,
    name: 'lean_checkpoint_indexes',
    isOnline: true,
    sql: `-- online
-- Figures of steps are counted by the time of their completion, which is also the order in which they are stored: a
-- block-range index costs next to nothing, the ordered one a write for each step.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_operation_outputs_completed_at
  ON {schema}.operation_outputs USING brin (completed_at_epoch_ms) WITH (autosummarize = on);
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_operation_outputs_completed_at_function_name_v2;
-- Checkpoints are deleted with their workflow. Those of databases without the foreign key are found by their primary key.
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_operation_outputs_retention;
`,
  },
  {
    number: 23,
    name: 'lean_journal',
    isOnline: false,
    sql: `-- The journal of a run costs one row for each of its writes: the view \`journal_events\` makes the events of it. There is no
-- foreign key, whose check locks the workflow for each row: all writers have that lock anyway. Triggers take its place.
SET LOCAL lock_timeout = '3s';

ALTER TABLE {schema}.journal
  -- The owner token of the run, if the row is about how an attempt began or how a workflow ended.
  ADD COLUMN IF NOT EXISTS owner TEXT,
  -- Of the step.
  ADD COLUMN IF NOT EXISTS name TEXT,
  ADD COLUMN IF NOT EXISTS started_at BIGINT,
  -- Tells the checkpoint of a step from a later one under the same number.
  ADD COLUMN IF NOT EXISTS completed_at BIGINT,
  DROP CONSTRAINT IF EXISTS journal_workflow_id_fkey,
  DROP CONSTRAINT IF EXISTS journal_pkey;
DROP INDEX IF EXISTS {schema}.idx_journal_xid;
DROP INDEX IF EXISTS {schema}.idx_journal_at;
-- Readers that follow the journal read it in this order.
ALTER TABLE {schema}.journal ADD PRIMARY KEY (xid, seq);
CREATE INDEX IF NOT EXISTS idx_journal_workflow ON {schema}.journal (workflow_id, step);
-- Rows are stored in the order of their times, more or less.
CREATE INDEX IF NOT EXISTS idx_journal_at ON {schema}.journal USING brin (at) WITH (pages_per_range = 32, autosummarize = on);

-- With the rights of its owner: another program's role need not know the journal.
CREATE OR REPLACE FUNCTION {schema}.everstep_journal_follow() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM {schema}.journal AS j WHERE j.workflow_id = OLD.workflow_uuid;
  ELSIF TG_OP = 'UPDATE' THEN
    UPDATE {schema}.journal AS j SET workflow_id = NEW.workflow_uuid WHERE j.workflow_id = OLD.workflow_uuid;
  ELSE
    DELETE FROM {schema}.journal;
  END IF;
  RETURN NULL;
END;
$body$;

CREATE OR REPLACE TRIGGER everstep_journal_deleted
AFTER DELETE ON {schema}.workflow_status
FOR EACH ROW EXECUTE FUNCTION {schema}.everstep_journal_follow();

CREATE OR REPLACE TRIGGER everstep_journal_renamed
AFTER UPDATE OF workflow_uuid ON {schema}.workflow_status
FOR EACH ROW WHEN (OLD.workflow_uuid <> NEW.workflow_uuid)
EXECUTE FUNCTION {schema}.everstep_journal_follow();

CREATE OR REPLACE TRIGGER everstep_journal_truncated
AFTER TRUNCATE ON {schema}.workflow_status
FOR EACH STATEMENT EXECUTE FUNCTION {schema}.everstep_journal_follow();

-- Locks the original, so that it cannot be deleted before this row is committed.
CREATE OR REPLACE FUNCTION {schema}.everstep_journal_fork() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  note JSONB := NULLIF(current_setting('everstep.change', TRUE), '')::JSONB;
BEGIN
  INSERT INTO {schema}.journal (workflow_id, at, event_type, actor, details)
  SELECT w.workflow_uuid, NEW.created_at, 'WorkflowForked', note ->> 'actor', jsonb_strip_nulls(jsonb_build_object(
    'new_id', NEW.workflow_uuid, 'version', NEW.application_version, 'reason', note ->> 'reason'))
  FROM {schema}.workflow_status AS w
  WHERE w.workflow_uuid = NEW.forked_from
  FOR KEY SHARE OF w;
  RETURN NULL;
END;
$body$;

-- What each row says: that a workflow was started (0), that an attempt began (1), that a step did (2), and how it ended, or
-- another event (3).
CREATE OR REPLACE VIEW {schema}.journal_events AS
SELECT j.workflow_id, j.xid, j.seq, p.part, j.at,
  CASE p.part WHEN 1 THEN 'AttemptStarted' WHEN 2 THEN 'ActivityScheduled' ELSE j.event_type END AS event_type,
  CASE WHEN p.part <> 1 THEN j.step END AS step,
  CASE WHEN p.part = 1 OR j.owner IS NULL THEN j.attempt END AS attempt,
  j.executor, j.actor,
  CASE
    WHEN p.part = 1 THEN jsonb_strip_nulls(jsonb_build_object('version', j.details -> 'version', 'queue', j.details -> 'queue'))
    WHEN p.part = 2 THEN jsonb_build_object('activity_name', j.name, 'input', j.details -> 'input')
    WHEN p.part = 3 AND j.event_type IN ('ActivityCompleted', 'ActivityFailed') AND j.completed_at IS NOT NULL
      THEN jsonb_build_object('activity_name', j.name, 'duration_ms', j.completed_at - j.started_at)
    WHEN p.part = 3 AND j.event_type IN ('WorkflowCompleted', 'WorkflowFailed') AND j.completed_at IS NOT NULL
      THEN jsonb_build_object('duration_ms', j.completed_at - j.started_at)
    ELSE j.details
  END AS details,
  j.completed_at, j.owner,
  COALESCE(j.key, CASE
    WHEN p.part = 0 THEN 'started'
    WHEN p.part = 1 THEN 'attempt:' || j.owner
    WHEN j.step IS NOT NULL
      THEN 'step:' || j.step || CASE WHEN p.part = 2 OR j.event_type = 'TimerScheduled' THEN ':begun:' ELSE ':done:' END || j.completed_at
    ELSE 'outcome:' || j.owner
  END) AS key
FROM {schema}.journal AS j
JOIN (VALUES (0), (1), (2), (3)) AS p(part) ON CASE p.part
  WHEN 0 THEN j.event_type = 'WorkflowStarted'
  WHEN 1 THEN j.attempt IS NOT NULL AND j.owner IS NOT NULL
  WHEN 2 THEN j.event_type IN ('ActivityCompleted', 'ActivityFailed') AND j.completed_at IS NOT NULL
  ELSE j.event_type NOT IN ('WorkflowStarted', 'PayloadKept') END;

-- Where no event is derived that is stored, a value is selected instead of NOT EXISTS: the planner would hash the whole
-- journal for that.
CREATE OR REPLACE VIEW {schema}.history AS
SELECT e.workflow_id, CASE WHEN e.part = 0 THEN 0 ELSE 1 END AS phase, e.at, e.step,
  CASE WHEN e.part = 2 OR (e.step IS NOT NULL AND e.event_type IN ('ActivityScheduled', 'TimerScheduled')) THEN 0 ELSE 1 END AS part,
  e.seq, e.event_type, e.attempt, e.executor, e.actor,
  CASE WHEN k.key IS NULL THEN e.details ELSE COALESCE(e.details, '{}'::JSONB) || k.details END AS details,
  CASE
    WHEN e.part = 0 THEN 'input'
    WHEN w.status = 'SUCCESS' OR (o.function_id IS NOT NULL AND o.error IS NULL) THEN 'result'
    WHEN w.status = 'ERROR' OR o.error IS NOT NULL THEN 'error'
  END AS payload_name,
  CASE
    WHEN e.part = 0 THEN w.inputs
    WHEN w.workflow_uuid IS NOT NULL THEN COALESCE(w.output, w.error)
    ELSE COALESCE(o.output, o.error)
  END AS payload,
  COALESCE(w.serialization, o.serialization) AS serialization, e.key
FROM {schema}.journal_events AS e
LEFT JOIN {schema}.operation_outputs AS o
  ON o.workflow_uuid = e.workflow_id AND o.function_id = e.step AND o.completed_at_epoch_ms = e.completed_at AND e.part = 3
  AND e.event_type NOT IN ('TimerScheduled', 'TimerFired')
LEFT JOIN {schema}.workflow_status AS w
  ON w.workflow_uuid = e.workflow_id AND (e.part = 0 OR (
    e.event_type IN ('WorkflowCompleted', 'WorkflowFailed') AND e.owner = w.owner_xid AND w.status IN ('SUCCESS', 'ERROR')))
-- What a rewind has deleted.
LEFT JOIN {schema}.journal AS k
  ON k.workflow_id = e.workflow_id AND k.key = 'payload:' || e.seq AND e.part = 3 AND e.completed_at IS NOT NULL
UNION ALL
SELECT d.workflow_id, d.phase, d.at, d.step, d.part, NULL::BIGINT AS seq, d.event_type, d.attempt, d.executor, NULL AS actor,
  d.details, d.payload_name, d.payload, d.serialization, d.key
FROM (
  SELECT w.workflow_uuid AS workflow_id, 0 AS phase, w.created_at AS at, NULL::INTEGER AS step, 0 AS part,
    'WorkflowStarted' AS event_type, NULL::INTEGER AS attempt, NULL AS executor,
    jsonb_strip_nulls(jsonb_build_object(
      'workflow_name', w.name, 'class_name', NULLIF(w.class_name, ''), 'config_name', NULLIF(w.config_name, ''),
      'queue', w.queue_name, 'priority', w.priority, 'partition_key', w.queue_partition_key,
      'timeout_ms', w.workflow_timeout_ms, 'parent_id', w.parent_workflow_id, 'forked_from', w.forked_from,
      'schedule', w.schedule_name, 'version', w.application_version)) AS details,
    'input' AS payload_name, COALESCE(w.inputs, i.inputs) AS payload, w.serialization, 'started' AS key
  FROM {schema}.workflow_status AS w
  LEFT JOIN {schema}.workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
  WHERE (SELECT 1 FROM {schema}.journal AS s WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL AND s.event_type = 'WorkflowStarted' LIMIT 1) IS NULL
  UNION ALL
  SELECT w.workflow_uuid, 1, w.started_at_epoch_ms, NULL, 0, 'AttemptStarted', w.recovery_attempts::INTEGER, w.executor_id,
    jsonb_strip_nulls(jsonb_build_object('version', w.application_version, 'queue', w.queue_name)), NULL, NULL, NULL,
    'attempt:' || w.owner_xid
  FROM {schema}.workflow_status AS w
  WHERE w.started_at_epoch_ms IS NOT NULL AND w.status NOT IN ('ENQUEUED', 'DELAYED')
    AND (
      SELECT 1 FROM {schema}.journal AS s
      WHERE s.workflow_id = w.workflow_uuid AND s.attempt IS NOT NULL
        AND (s.owner = w.owner_xid OR s.key = 'attempt:' || w.owner_xid)
      LIMIT 1) IS NULL
  UNION ALL
  SELECT o.workflow_uuid, 1,
    CASE
      WHEN p.part = 0 THEN COALESCE(o.started_at_epoch_ms, o.completed_at_epoch_ms, o.retention_timestamp)
      WHEN o.function_name = 'DBOS.sleep' THEN COALESCE(f.fire_at, o.completed_at_epoch_ms, o.retention_timestamp)
      ELSE COALESCE(o.completed_at_epoch_ms, o.retention_timestamp)
    END,
    o.function_id, p.part,
    CASE
      WHEN o.function_name = 'DBOS.sleep' THEN CASE WHEN p.part = 0 THEN 'TimerScheduled' ELSE 'TimerFired' END
      WHEN p.part = 0 THEN 'ActivityScheduled'
      WHEN o.function_name = 'DBOS.getResult' THEN 'ChildWorkflowCompleted'
      WHEN o.child_workflow_id IS NOT NULL AND o.function_name NOT LIKE 'DBOS.%' THEN 'ChildWorkflowStarted'
      WHEN o.function_name = 'DBOS.recv' THEN CASE
        WHEN o.output IS NULL OR o.output = 'null' OR o.output LIKE '{"json":null%' THEN 'ReceiveTimedOut' ELSE 'MessageConsumed' END
      WHEN o.function_name = 'DBOS.setEvent' THEN 'EventSet'
      WHEN o.function_name = 'DBOS.closeStream' THEN 'StreamClosed'
      WHEN o.function_name LIKE 'DBOS.patch-%' THEN 'WorkflowPatched'
      WHEN o.function_name LIKE 'DBOS.%' THEN 'OperationCompleted'
      WHEN o.error IS NOT NULL THEN 'ActivityFailed'
      ELSE 'ActivityCompleted'
    END,
    NULL, NULL,
    CASE
      WHEN o.function_name = 'DBOS.sleep' THEN jsonb_build_object(
        'timer_id', o.workflow_uuid || ':' || o.function_id,
        CASE WHEN p.part = 0 THEN 'fire_at' ELSE 'fired_at' END, to_timestamp(f.fire_at / 1000.0))
      WHEN p.part = 0 THEN jsonb_build_object('activity_name', o.function_name, 'input', NULL)
      WHEN o.child_workflow_id IS NOT NULL THEN jsonb_build_object('child_id', o.child_workflow_id, 'name', o.function_name)
      WHEN o.function_name = 'DBOS.setEvent' THEN jsonb_build_object('key', (
        SELECT h.key FROM {schema}.workflow_events_history AS h
        WHERE h.workflow_uuid = o.workflow_uuid AND h.function_id = o.function_id LIMIT 1))
      WHEN o.function_name LIKE 'DBOS.patch-%' THEN jsonb_build_object('patch', SUBSTR(o.function_name, 12))
      WHEN o.function_name LIKE 'DBOS.%' THEN jsonb_build_object('operation', o.function_name)
      ELSE jsonb_build_object('activity_name', o.function_name,
        'duration_ms', o.completed_at_epoch_ms - o.started_at_epoch_ms)
    END,
    CASE WHEN p.part = 1 AND o.function_name <> 'DBOS.sleep' THEN CASE WHEN o.error IS NULL THEN 'result' ELSE 'error' END END,
    CASE WHEN p.part = 1 AND o.function_name <> 'DBOS.sleep' THEN COALESCE(o.output, o.error) END,
    o.serialization,
    'step:' || o.function_id || CASE WHEN p.part = 0 THEN ':begun:' ELSE ':done:' END || COALESCE(o.completed_at_epoch_ms, 0)
  FROM {schema}.operation_outputs AS o
  -- A sleep records when it ends: a number, or superjson that contains it.
  CROSS JOIN LATERAL (SELECT CASE WHEN o.function_name = 'DBOS.sleep'
    THEN SUBSTRING(o.output FROM '[0-9]{10,15}')::BIGINT END AS fire_at) AS f
  JOIN (VALUES (0), (1)) AS p(part)
    ON (p.part = 1 OR o.function_name = 'DBOS.sleep'
      OR (o.function_name NOT LIKE 'DBOS.%' AND o.child_workflow_id IS NULL))
    -- The timer of a wait is recorded before it ends, and says nothing of how the wait ended.
    AND (p.part = 0 OR o.function_name <> 'DBOS.sleep' OR (o.completed_at_epoch_ms >= f.fire_at
      AND f.fire_at <= FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT))
  WHERE (
    SELECT 1 FROM {schema}.journal AS s
    WHERE s.workflow_id = o.workflow_uuid AND s.step = o.function_id AND s.completed_at = COALESCE(o.completed_at_epoch_ms, 0)
      AND (o.function_name <> 'DBOS.sleep' OR (s.event_type = 'TimerFired') = (p.part = 1))
    LIMIT 1) IS NULL
  UNION ALL
  SELECT n.destination_uuid, 1, n.created_at_epoch_ms, NULL, 0, 'SignalReceived', NULL, NULL,
    jsonb_build_object('signal_name', NULLIF(n.topic, '__null__topic__'), 'message_id', n.message_uuid),
    'input', n.message, n.serialization, 'message:' || n.message_uuid
  FROM {schema}.notifications AS n
  WHERE (
    SELECT 1 FROM {schema}.journal AS s WHERE s.workflow_id = n.destination_uuid AND s.key = 'message:' || n.message_uuid LIMIT 1) IS NULL
  UNION ALL
  SELECT w.workflow_uuid, 2, COALESCE(w.completed_at, w.updated_at), NULL, 0,
    CASE w.status WHEN 'SUCCESS' THEN 'WorkflowCompleted' WHEN 'ERROR' THEN 'WorkflowFailed' ELSE 'WorkflowCanceled' END,
    NULL, NULL, jsonb_build_object('duration_ms', COALESCE(w.completed_at, w.updated_at) - w.created_at),
    CASE w.status WHEN 'SUCCESS' THEN 'result' WHEN 'ERROR' THEN 'error' END,
    COALESCE(w.output, r.output, w.error, r.error), w.serialization, 'outcome:' || w.owner_xid
  FROM {schema}.workflow_status AS w
  LEFT JOIN {schema}.workflow_output AS r ON r.workflow_uuid = w.workflow_uuid
  WHERE (w.status IN ('SUCCESS', 'ERROR') OR (w.status = 'CANCELLED' AND COALESCE((
    SELECT j.event_type FROM {schema}.journal AS j
    WHERE j.workflow_id = w.workflow_uuid AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
    ORDER BY j.seq DESC LIMIT 1), '') <> 'WorkflowTimedOut'))
    AND (
      SELECT 1 FROM {schema}.journal AS s
      WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL
        AND ((s.owner = w.owner_xid AND s.event_type IN ('WorkflowCompleted', 'WorkflowFailed')) OR s.key = 'outcome:' || w.owner_xid)
      LIMIT 1) IS NULL
) AS d;
`,
  },
  {
    number: 24,
    name: 'schedule_timers',
    isOnline: false,
    sql: `-- When each schedule fires next, which only code can tell. Engines write it for the view of timers.
CREATE TABLE IF NOT EXISTS {schema}.schedule_timers (
  schedule_id TEXT PRIMARY KEY
    REFERENCES {schema}.workflow_schedules (schedule_id) ON UPDATE CASCADE ON DELETE CASCADE,
  -- The time of the occurrence, which is part of its workflow's ID, and that time with the jitter.
  due_at BIGINT NOT NULL,
  fire_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);

-- The same in the form of sched's tables, in a schema of their own. False if the role may not create schemas; then call it
-- with a role that may.
CREATE OR REPLACE FUNCTION {schema}.everstep_create_history() RETURNS BOOLEAN
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
  CREATE SCHEMA IF NOT EXISTS {history};

  CREATE OR REPLACE VIEW {history}.workflow_executions AS
  SELECT w.workflow_uuid AS workflow_id, COALESCE(w.creator_xid, w.workflow_uuid) AS run_id, w.name,
    CASE
      WHEN w.status IN ('ENQUEUED', 'DELAYED', 'PENDING') THEN 'RUNNING'
      WHEN w.status = 'SUCCESS' THEN 'COMPLETED'
      WHEN w.status <> 'CANCELLED' THEN 'FAILED'
      WHEN (
        SELECT j.event_type FROM {schema}.journal AS j
        WHERE j.workflow_id = w.workflow_uuid AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
        ORDER BY j.seq DESC LIMIT 1) = 'WorkflowTimedOut' THEN 'TIMED_OUT'
      ELSE 'CANCELED'
    END AS status,
    {schema}.everstep_json(COALESCE(w.inputs, i.inputs)) AS input,
    {schema}.everstep_json(COALESCE(w.output, r.output)) AS result,
    COALESCE(w.error, r.error) AS error,
    to_timestamp(w.created_at / 1000.0) AS start_time,
    to_timestamp(w.completed_at / 1000.0) AS end_time,
    -- Each transition moves to a later stage, or adds to the journal more than a step back takes away.
    (1 + CASE w.status WHEN 'DELAYED' THEN 0 WHEN 'ENQUEUED' THEN 1 WHEN 'PENDING' THEN 2 ELSE 3 END + COALESCE((
      SELECT SUM(CASE WHEN j.event_type IN ('AttemptLost', 'WorkflowResumed', 'WorkflowRewound', 'WorkflowTaskYielded', 'DelayChanged')
        THEN 4 ELSE 1 END)
      FROM {schema}.journal AS j WHERE j.workflow_id = w.workflow_uuid), 0))::INTEGER AS version
  FROM {schema}.workflow_status AS w
  LEFT JOIN {schema}.workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
  LEFT JOIN {schema}.workflow_output AS r ON r.workflow_uuid = w.workflow_uuid;

  CREATE OR REPLACE TRIGGER everstep_execution_deleted
  INSTEAD OF DELETE ON {history}.workflow_executions
  FOR EACH ROW EXECUTE FUNCTION {schema}.everstep_delete_execution();

  CREATE OR REPLACE VIEW {history}.workflow_events AS
  SELECT h.workflow_id,
    ROW_NUMBER() OVER (
      PARTITION BY h.workflow_id ORDER BY h.phase, h.at,
      CASE WHEN h.event_type = 'AttemptStarted' THEN -1 ELSE COALESCE(h.step, 2147483647) END, h.part, h.seq) AS idx,
    h.event_type, to_timestamp(h.at / 1000.0) AS timestamp,
    COALESCE(h.details, '{}'::JSONB) || CASE
      WHEN h.payload_name IS NULL THEN '{}'::JSONB
      ELSE jsonb_build_object(h.payload_name, {schema}.everstep_json(h.payload)) END AS details
  FROM {schema}.history AS h;

  CREATE OR REPLACE VIEW {history}.tasks AS
  SELECT COALESCE(w.owner_xid, w.creator_xid, '') || '/' || w.workflow_uuid AS task_token, w.workflow_uuid AS workflow_id,
    'WORKFLOW' AS kind, NULL::TEXT AS activity_name, {schema}.everstep_json(COALESCE(w.inputs, i.inputs)) AS input,
    CASE WHEN w.status = 'PENDING' THEN 'IN_FLIGHT' ELSE 'PENDING' END AS status,
    CASE WHEN w.status = 'PENDING' THEN w.owner_xid END AS claim_token,
    to_timestamp(e.lease_until_epoch_ms / 1000.0) AS visibility_timeout, to_timestamp(w.created_at / 1000.0) AS created_at
  FROM {schema}.workflow_status AS w
  LEFT JOIN {schema}.workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
  LEFT JOIN {schema}.executors AS e ON w.status = 'PENDING' AND e.incarnation_id = SPLIT_PART(w.owner_xid, '.', 1)
  WHERE w.status IN ('ENQUEUED', 'DELAYED', 'PENDING');

  CREATE OR REPLACE VIEW {history}.timers AS
  SELECT t.timer_id, t.workflow_id, to_timestamp(t.fire_at / 1000.0) AS fire_at,
    t.fired OR (t.kind NOT IN ('own', 'schedule') AND t.fire_at <= FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT) AS fired,
    to_timestamp(t.created_at / 1000.0) AS created_at, t.kind
  FROM (
    SELECT m.timer_id, m.workflow_id, m.fire_at, m.fired, m.created_at, 'own' AS kind
    FROM {schema}.journal_timers AS m
    UNION ALL
    SELECT o.workflow_uuid || ':' || o.function_id, o.workflow_uuid, SUBSTRING(o.output FROM '[0-9]{10,15}')::BIGINT, FALSE,
      COALESCE(o.started_at_epoch_ms, o.retention_timestamp), 'sleep'
    FROM {schema}.workflow_status AS w
    JOIN {schema}.operation_outputs AS o ON o.workflow_uuid = w.workflow_uuid AND o.function_name = 'DBOS.sleep'
    WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED')
    UNION ALL
    SELECT w.workflow_uuid || ':delay', w.workflow_uuid, w.delay_until_epoch_ms, FALSE, w.created_at, 'delay'
    FROM {schema}.workflow_status AS w
    WHERE w.status = 'DELAYED' AND w.delay_until_epoch_ms IS NOT NULL
    UNION ALL
    SELECT w.workflow_uuid || ':deadline', w.workflow_uuid, w.workflow_deadline_epoch_ms, FALSE,
      COALESCE(w.started_at_epoch_ms, w.created_at), 'deadline'
    FROM {schema}.workflow_status AS w
    WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND w.workflow_deadline_epoch_ms IS NOT NULL
    UNION ALL
    -- The backoff of a step that will be repeated.
    SELECT a.workflow_uuid || ':' || a.function_id || ':retry', a.workflow_uuid, a.retry_at_epoch_ms, FALSE,
      COALESCE(w.started_at_epoch_ms, w.created_at), 'retry'
    FROM {schema}.step_attempts AS a
    JOIN {schema}.workflow_status AS w ON w.workflow_uuid = a.workflow_uuid
    LEFT JOIN {schema}.operation_outputs AS o ON o.workflow_uuid = a.workflow_uuid AND o.function_id = a.function_id
    WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND o.workflow_uuid IS NULL
    UNION ALL
    -- Of the workflow that it will start.
    SELECT 'schedule:' || s.schedule_name, 'sched-' || s.schedule_name || '-'
      || to_char(to_timestamp(n.due_at / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
      n.fire_at, FALSE, n.created_at, 'schedule'
    FROM {schema}.schedule_timers AS n
    JOIN {schema}.workflow_schedules AS s ON s.schedule_id = n.schedule_id
    WHERE s.status = 'ACTIVE'
  ) AS t;
  RETURN TRUE;
EXCEPTION
  WHEN insufficient_privilege THEN
    RETURN FALSE;
END;
$body$;

SELECT {schema}.everstep_create_history();
`,
  },
  {
    number: 25,
    name: 'ends_of_waits',
    isOnline: false,
    sql: `-- The ends of parked waits, and queues whose parked workflows give up their slots.
SET LOCAL lock_timeout = '3s';

-- Queues whose workflows leave their slots while they are parked.
CREATE TABLE IF NOT EXISTS {schema}.slot_releasing_queues (
  name TEXT PRIMARY KEY
);

-- The waits of a workflow end when it is no longer parked, whatever program changes it.
CREATE OR REPLACE FUNCTION {schema}.everstep_end_waits() RETURNS TRIGGER
LANGUAGE plpgsql
SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
BEGIN
  DELETE FROM {schema}.parked_waits AS p WHERE p.workflow_uuid = NEW.workflow_uuid;
  RETURN NULL;
END;
$body$;
CREATE OR REPLACE TRIGGER everstep_end_waits
AFTER UPDATE ON {schema}.workflow_status
FOR EACH ROW
WHEN (OLD.status = 'DELAYED' AND NEW.status <> 'DELAYED' AND OLD.owner_xid LIKE '%.%')
EXECUTE FUNCTION {schema}.everstep_end_waits();

-- Locks workflows before their waits, and in the order of their IDs: other commits that end the same waits do so too, and
-- wait instead of being a deadlock.
CREATE OR REPLACE FUNCTION {schema}.everstep_wake_parked(keys TEXT[]) RETURNS VOID
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
DECLARE
  woken RECORD;
BEGIN
  FOR woken IN
    WITH waiting AS MATERIALIZED (
      SELECT w.workflow_uuid AS id
      FROM {schema}.workflow_status AS w
      WHERE w.workflow_uuid IN (SELECT p.workflow_uuid FROM {schema}.parked_waits AS p WHERE p.wait_key = ANY (keys))
      ORDER BY w.workflow_uuid
      FOR NO KEY UPDATE OF w
    ), roused AS (
      UPDATE {schema}.workflow_status AS w
      SET status = 'ENQUEUED'
      FROM waiting
      WHERE w.workflow_uuid = waiting.id
        AND CASE WHEN w.status = 'DELAYED' AND w.owner_xid LIKE '%.%' THEN TRUE ELSE FALSE END
      RETURNING w.queue_name, w.queue_partition_key
    )
    SELECT DISTINCT roused.queue_name AS queue, roused.queue_partition_key AS partition_key FROM roused
  LOOP
    NULL;
-- if listen_notify
    IF pg_notification_queue_usage() <= 0.5 AND octet_length(woken.queue) + octet_length(COALESCE(woken.partition_key, '')) < 1000 THEN
      PERFORM pg_notify('everstep_queues', CASE
        WHEN woken.partition_key IS NULL THEN json_build_array(woken.queue)
        ELSE json_build_array(woken.queue, woken.partition_key)
      END::TEXT);
    END IF;
-- end if
  END LOOP;
END;
$body$;
`,
  },
  {
    number: 26,
    name: 'history_lookups',
    isOnline: false,
    sql: `-- Reads a history in which every event is stored with half as many lookups.
SET LOCAL lock_timeout = '3s';

-- Where no event is derived that is stored, a value is selected instead of NOT EXISTS: the planner would hash the whole
-- journal for that.
CREATE OR REPLACE VIEW {schema}.history AS
SELECT e.workflow_id, CASE WHEN e.part = 0 THEN 0 ELSE 1 END AS phase, e.at, e.step,
  CASE WHEN e.part = 2 OR (e.step IS NOT NULL AND e.event_type IN ('ActivityScheduled', 'TimerScheduled')) THEN 0 ELSE 1 END AS part,
  e.seq, e.event_type, e.attempt, e.executor, e.actor,
  CASE WHEN k.key IS NULL THEN e.details ELSE COALESCE(e.details, '{}'::JSONB) || k.details END AS details,
  CASE
    WHEN e.part = 0 THEN 'input'
    WHEN w.status = 'SUCCESS' OR (o.function_id IS NOT NULL AND o.error IS NULL) THEN 'result'
    WHEN w.status = 'ERROR' OR o.error IS NOT NULL THEN 'error'
  END AS payload_name,
  CASE
    WHEN e.part = 0 THEN w.inputs
    WHEN w.workflow_uuid IS NOT NULL THEN COALESCE(w.output, w.error)
    ELSE COALESCE(o.output, o.error)
  END AS payload,
  COALESCE(w.serialization, o.serialization) AS serialization, e.key
FROM {schema}.journal_events AS e
LEFT JOIN {schema}.operation_outputs AS o
  ON o.workflow_uuid = e.workflow_id AND o.function_id = e.step AND o.completed_at_epoch_ms = e.completed_at AND e.part = 3
  AND e.event_type NOT IN ('TimerScheduled', 'TimerFired')
LEFT JOIN {schema}.workflow_status AS w
  ON w.workflow_uuid = e.workflow_id AND (e.part = 0 OR (
    e.event_type IN ('WorkflowCompleted', 'WorkflowFailed') AND e.owner = w.owner_xid AND w.status IN ('SUCCESS', 'ERROR')))
-- What a rewind has deleted.
LEFT JOIN {schema}.journal AS k
  ON k.workflow_id = e.workflow_id AND k.key = CASE WHEN e.part = 3 AND e.completed_at IS NOT NULL THEN 'payload:' || e.seq END
UNION ALL
SELECT d.workflow_id, d.phase, d.at, d.step, d.part, NULL::BIGINT AS seq, d.event_type, d.attempt, d.executor, NULL AS actor,
  d.details, d.payload_name, d.payload, d.serialization, d.key
FROM (
  SELECT w.workflow_uuid AS workflow_id, 0 AS phase, w.created_at AS at, NULL::INTEGER AS step, 0 AS part,
    'WorkflowStarted' AS event_type, NULL::INTEGER AS attempt, NULL AS executor,
    jsonb_strip_nulls(jsonb_build_object(
      'workflow_name', w.name, 'class_name', NULLIF(w.class_name, ''), 'config_name', NULLIF(w.config_name, ''),
      'queue', w.queue_name, 'priority', w.priority, 'partition_key', w.queue_partition_key,
      'timeout_ms', w.workflow_timeout_ms, 'parent_id', w.parent_workflow_id, 'forked_from', w.forked_from,
      'schedule', w.schedule_name, 'version', w.application_version)) AS details,
    'input' AS payload_name, COALESCE(w.inputs, i.inputs) AS payload, w.serialization, 'started' AS key
  FROM {schema}.workflow_status AS w
  LEFT JOIN {schema}.workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
  WHERE (SELECT 1 FROM {schema}.journal AS s WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL AND s.event_type = 'WorkflowStarted' LIMIT 1) IS NULL
  UNION ALL
  SELECT w.workflow_uuid, 1, w.started_at_epoch_ms, NULL, 0, 'AttemptStarted', w.recovery_attempts::INTEGER, w.executor_id,
    jsonb_strip_nulls(jsonb_build_object('version', w.application_version, 'queue', w.queue_name)), NULL, NULL, NULL,
    'attempt:' || w.owner_xid
  FROM {schema}.workflow_status AS w
  WHERE w.started_at_epoch_ms IS NOT NULL AND w.status NOT IN ('ENQUEUED', 'DELAYED')
    AND (
      SELECT 1 FROM {schema}.journal AS s
      WHERE s.workflow_id = w.workflow_uuid AND s.attempt IS NOT NULL
        AND (s.owner = w.owner_xid OR s.key = 'attempt:' || w.owner_xid)
      LIMIT 1) IS NULL
  UNION ALL
  SELECT o.workflow_uuid, 1,
    CASE
      WHEN p.part = 0 THEN COALESCE(o.started_at_epoch_ms, o.completed_at_epoch_ms, o.retention_timestamp)
      WHEN o.function_name = 'DBOS.sleep' THEN COALESCE(f.fire_at, o.completed_at_epoch_ms, o.retention_timestamp)
      ELSE COALESCE(o.completed_at_epoch_ms, o.retention_timestamp)
    END,
    o.function_id, p.part,
    CASE
      WHEN o.function_name = 'DBOS.sleep' THEN CASE WHEN p.part = 0 THEN 'TimerScheduled' ELSE 'TimerFired' END
      WHEN p.part = 0 THEN 'ActivityScheduled'
      WHEN o.function_name = 'DBOS.getResult' THEN 'ChildWorkflowCompleted'
      WHEN o.child_workflow_id IS NOT NULL AND o.function_name NOT LIKE 'DBOS.%' THEN 'ChildWorkflowStarted'
      WHEN o.function_name = 'DBOS.recv' THEN CASE
        WHEN o.output IS NULL OR o.output = 'null' OR o.output LIKE '{"json":null%' THEN 'ReceiveTimedOut' ELSE 'MessageConsumed' END
      WHEN o.function_name = 'DBOS.setEvent' THEN 'EventSet'
      WHEN o.function_name = 'DBOS.closeStream' THEN 'StreamClosed'
      WHEN o.function_name LIKE 'DBOS.patch-%' THEN 'WorkflowPatched'
      WHEN o.function_name LIKE 'DBOS.%' THEN 'OperationCompleted'
      WHEN o.error IS NOT NULL THEN 'ActivityFailed'
      ELSE 'ActivityCompleted'
    END,
    NULL, NULL,
    CASE
      WHEN o.function_name = 'DBOS.sleep' THEN jsonb_build_object(
        'timer_id', o.workflow_uuid || ':' || o.function_id,
        CASE WHEN p.part = 0 THEN 'fire_at' ELSE 'fired_at' END, to_timestamp(f.fire_at / 1000.0))
      WHEN p.part = 0 THEN jsonb_build_object('activity_name', o.function_name, 'input', NULL)
      WHEN o.child_workflow_id IS NOT NULL THEN jsonb_build_object('child_id', o.child_workflow_id, 'name', o.function_name)
      WHEN o.function_name = 'DBOS.setEvent' THEN jsonb_build_object('key', (
        SELECT h.key FROM {schema}.workflow_events_history AS h
        WHERE h.workflow_uuid = o.workflow_uuid AND h.function_id = o.function_id LIMIT 1))
      WHEN o.function_name LIKE 'DBOS.patch-%' THEN jsonb_build_object('patch', SUBSTR(o.function_name, 12))
      WHEN o.function_name LIKE 'DBOS.%' THEN jsonb_build_object('operation', o.function_name)
      ELSE jsonb_build_object('activity_name', o.function_name,
        'duration_ms', o.completed_at_epoch_ms - o.started_at_epoch_ms)
    END,
    CASE WHEN p.part = 1 AND o.function_name <> 'DBOS.sleep' THEN CASE WHEN o.error IS NULL THEN 'result' ELSE 'error' END END,
    CASE WHEN p.part = 1 AND o.function_name <> 'DBOS.sleep' THEN COALESCE(o.output, o.error) END,
    o.serialization,
    'step:' || o.function_id || CASE WHEN p.part = 0 THEN ':begun:' ELSE ':done:' END || COALESCE(o.completed_at_epoch_ms, 0)
  FROM {schema}.operation_outputs AS o
  -- A sleep records when it ends: a number, or superjson that contains it.
  CROSS JOIN LATERAL (SELECT CASE WHEN o.function_name = 'DBOS.sleep'
    THEN SUBSTRING(o.output FROM '[0-9]{10,15}')::BIGINT END AS fire_at) AS f
  JOIN (VALUES (0), (1)) AS p(part)
    ON (p.part = 1 OR o.function_name = 'DBOS.sleep'
      OR (o.function_name NOT LIKE 'DBOS.%' AND o.child_workflow_id IS NULL))
    -- The timer of a wait is recorded before it ends, and says nothing of how the wait ended.
    AND (p.part = 0 OR o.function_name <> 'DBOS.sleep' OR (o.completed_at_epoch_ms >= f.fire_at
      AND f.fire_at <= FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT))
  -- Only the events of a sleep are stored one by one. Those of a step are looked for once, before they are told apart.
  WHERE CASE WHEN o.function_name = 'DBOS.sleep' THEN TRUE ELSE (
      SELECT 1 FROM {schema}.journal AS s
      WHERE s.workflow_id = o.workflow_uuid AND s.step = o.function_id AND s.completed_at = COALESCE(o.completed_at_epoch_ms, 0)
      LIMIT 1) IS NULL END
    AND CASE WHEN o.function_name = 'DBOS.sleep' THEN (
      SELECT 1 FROM {schema}.journal AS s
      WHERE s.workflow_id = o.workflow_uuid AND s.step = o.function_id AND s.completed_at = COALESCE(o.completed_at_epoch_ms, 0)
        AND (s.event_type = 'TimerFired') = (p.part = 1)
      LIMIT 1) IS NULL ELSE TRUE END
  UNION ALL
  SELECT n.destination_uuid, 1, n.created_at_epoch_ms, NULL, 0, 'SignalReceived', NULL, NULL,
    jsonb_build_object('signal_name', NULLIF(n.topic, '__null__topic__'), 'message_id', n.message_uuid),
    'input', n.message, n.serialization, 'message:' || n.message_uuid
  FROM {schema}.notifications AS n
  WHERE (
    SELECT 1 FROM {schema}.journal AS s WHERE s.workflow_id = n.destination_uuid AND s.key = 'message:' || n.message_uuid LIMIT 1) IS NULL
  UNION ALL
  SELECT w.workflow_uuid, 2, COALESCE(w.completed_at, w.updated_at), NULL, 0,
    CASE w.status WHEN 'SUCCESS' THEN 'WorkflowCompleted' WHEN 'ERROR' THEN 'WorkflowFailed' ELSE 'WorkflowCanceled' END,
    NULL, NULL, jsonb_build_object('duration_ms', COALESCE(w.completed_at, w.updated_at) - w.created_at),
    CASE w.status WHEN 'SUCCESS' THEN 'result' WHEN 'ERROR' THEN 'error' END,
    COALESCE(w.output, r.output, w.error, r.error), w.serialization, 'outcome:' || w.owner_xid
  FROM {schema}.workflow_status AS w
  LEFT JOIN {schema}.workflow_output AS r ON r.workflow_uuid = w.workflow_uuid
  WHERE (w.status IN ('SUCCESS', 'ERROR') OR (w.status = 'CANCELLED' AND COALESCE((
    SELECT j.event_type FROM {schema}.journal AS j
    WHERE j.workflow_id = w.workflow_uuid AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
    ORDER BY j.seq DESC LIMIT 1), '') <> 'WorkflowTimedOut'))
    AND (
      SELECT 1 FROM {schema}.journal AS s
      WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL
        AND ((s.owner = w.owner_xid AND s.event_type IN ('WorkflowCompleted', 'WorkflowFailed')) OR s.key = 'outcome:' || w.owner_xid)
      LIMIT 1) IS NULL
) AS d;
`,
  },
  {
    number: 27,
    name: 'deletions',
    isOnline: false,
    sql: `-- Who deleted a workflow, and why, if the caller has said so. The rest of its history goes with it.
SET LOCAL lock_timeout = '3s';

CREATE TABLE IF NOT EXISTS {schema}.deleted_workflows (
  workflow_uuid TEXT NOT NULL,
  deleted_at BIGINT NOT NULL,
  name TEXT,
  actor TEXT,
  reason TEXT,
  PRIMARY KEY (workflow_uuid, deleted_at)
);

-- Where no event is derived that is stored, a value is selected instead of NOT EXISTS: the planner would hash the whole
-- journal for that.
CREATE OR REPLACE VIEW {schema}.history AS
SELECT e.workflow_id, CASE WHEN e.part = 0 THEN 0 ELSE 1 END AS phase, e.at, e.step,
  CASE WHEN e.part = 2 OR (e.step IS NOT NULL AND e.event_type IN ('ActivityScheduled', 'TimerScheduled')) THEN 0 ELSE 1 END AS part,
  e.seq, e.event_type, e.attempt, e.executor, e.actor,
  CASE WHEN k.key IS NULL THEN e.details ELSE COALESCE(e.details, '{}'::JSONB) || k.details END AS details,
  CASE
    WHEN e.part = 0 THEN 'input'
    WHEN w.status = 'SUCCESS' OR (o.function_id IS NOT NULL AND o.error IS NULL) THEN 'result'
    WHEN w.status = 'ERROR' OR o.error IS NOT NULL THEN 'error'
  END AS payload_name,
  CASE
    WHEN e.part = 0 THEN w.inputs
    WHEN w.workflow_uuid IS NOT NULL THEN COALESCE(w.output, w.error)
    ELSE COALESCE(o.output, o.error)
  END AS payload,
  COALESCE(w.serialization, o.serialization) AS serialization, e.key
FROM {schema}.journal_events AS e
LEFT JOIN {schema}.operation_outputs AS o
  ON o.workflow_uuid = e.workflow_id AND o.function_id = e.step AND o.completed_at_epoch_ms = e.completed_at AND e.part = 3
  AND e.event_type NOT IN ('TimerScheduled', 'TimerFired')
LEFT JOIN {schema}.workflow_status AS w
  ON w.workflow_uuid = e.workflow_id AND (e.part = 0 OR (
    e.event_type IN ('WorkflowCompleted', 'WorkflowFailed') AND e.owner = w.owner_xid AND w.status IN ('SUCCESS', 'ERROR')))
-- What a rewind has deleted.
LEFT JOIN {schema}.journal AS k
  ON k.workflow_id = e.workflow_id AND k.key = CASE WHEN e.part = 3 AND e.completed_at IS NOT NULL THEN 'payload:' || e.seq END
UNION ALL
SELECT d.workflow_id, d.phase, d.at, d.step, d.part, NULL::BIGINT AS seq, d.event_type, d.attempt, d.executor, NULL AS actor,
  d.details, d.payload_name, d.payload, d.serialization, d.key
FROM (
  SELECT w.workflow_uuid AS workflow_id, 0 AS phase, w.created_at AS at, NULL::INTEGER AS step, 0 AS part,
    'WorkflowStarted' AS event_type, NULL::INTEGER AS attempt, NULL AS executor,
    jsonb_strip_nulls(jsonb_build_object(
      'workflow_name', w.name, 'class_name', NULLIF(w.class_name, ''), 'config_name', NULLIF(w.config_name, ''),
      'queue', w.queue_name, 'priority', w.priority, 'partition_key', w.queue_partition_key,
      'timeout_ms', w.workflow_timeout_ms, 'parent_id', w.parent_workflow_id, 'forked_from', w.forked_from,
      'schedule', w.schedule_name, 'version', w.application_version)) AS details,
    'input' AS payload_name, COALESCE(w.inputs, i.inputs) AS payload, w.serialization, 'started' AS key
  FROM {schema}.workflow_status AS w
  LEFT JOIN {schema}.workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
  WHERE (SELECT 1 FROM {schema}.journal AS s WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL AND s.event_type = 'WorkflowStarted' LIMIT 1) IS NULL
  UNION ALL
  SELECT w.workflow_uuid, 1, w.started_at_epoch_ms, NULL, 0, 'AttemptStarted', w.recovery_attempts::INTEGER, w.executor_id,
    jsonb_strip_nulls(jsonb_build_object('version', w.application_version, 'queue', w.queue_name)), NULL, NULL, NULL,
    'attempt:' || w.owner_xid
  FROM {schema}.workflow_status AS w
  WHERE w.started_at_epoch_ms IS NOT NULL AND w.status NOT IN ('ENQUEUED', 'DELAYED')
    AND (
      SELECT 1 FROM {schema}.journal AS s
      WHERE s.workflow_id = w.workflow_uuid AND s.attempt IS NOT NULL
        AND (s.owner = w.owner_xid OR s.key = 'attempt:' || w.owner_xid)
      LIMIT 1) IS NULL
  UNION ALL
  SELECT o.workflow_uuid, 1,
    CASE
      WHEN p.part = 0 THEN COALESCE(o.started_at_epoch_ms, o.completed_at_epoch_ms, o.retention_timestamp)
      WHEN o.function_name = 'DBOS.sleep' THEN COALESCE(f.fire_at, o.completed_at_epoch_ms, o.retention_timestamp)
      ELSE COALESCE(o.completed_at_epoch_ms, o.retention_timestamp)
    END,
    o.function_id, p.part,
    CASE
      WHEN o.function_name = 'DBOS.sleep' THEN CASE WHEN p.part = 0 THEN 'TimerScheduled' ELSE 'TimerFired' END
      WHEN p.part = 0 THEN 'ActivityScheduled'
      WHEN o.function_name = 'DBOS.getResult' THEN 'ChildWorkflowCompleted'
      WHEN o.child_workflow_id IS NOT NULL AND o.function_name NOT LIKE 'DBOS.%' THEN 'ChildWorkflowStarted'
      WHEN o.function_name = 'DBOS.recv' THEN CASE
        WHEN o.output IS NULL OR o.output = 'null' OR o.output LIKE '{"json":null%' THEN 'ReceiveTimedOut' ELSE 'MessageConsumed' END
      WHEN o.function_name = 'DBOS.setEvent' THEN 'EventSet'
      WHEN o.function_name = 'DBOS.closeStream' THEN 'StreamClosed'
      WHEN o.function_name LIKE 'DBOS.patch-%' THEN 'WorkflowPatched'
      WHEN o.function_name LIKE 'DBOS.%' THEN 'OperationCompleted'
      WHEN o.error IS NOT NULL THEN 'ActivityFailed'
      ELSE 'ActivityCompleted'
    END,
    NULL, NULL,
    CASE
      WHEN o.function_name = 'DBOS.sleep' THEN jsonb_build_object(
        'timer_id', o.workflow_uuid || ':' || o.function_id,
        CASE WHEN p.part = 0 THEN 'fire_at' ELSE 'fired_at' END, to_timestamp(f.fire_at / 1000.0))
      WHEN p.part = 0 THEN jsonb_build_object('activity_name', o.function_name, 'input', NULL)
      WHEN o.child_workflow_id IS NOT NULL THEN jsonb_build_object('child_id', o.child_workflow_id, 'name', o.function_name)
      WHEN o.function_name = 'DBOS.setEvent' THEN jsonb_build_object('key', (
        SELECT h.key FROM {schema}.workflow_events_history AS h
        WHERE h.workflow_uuid = o.workflow_uuid AND h.function_id = o.function_id LIMIT 1))
      WHEN o.function_name LIKE 'DBOS.patch-%' THEN jsonb_build_object('patch', SUBSTR(o.function_name, 12))
      WHEN o.function_name LIKE 'DBOS.%' THEN jsonb_build_object('operation', o.function_name)
      ELSE jsonb_build_object('activity_name', o.function_name,
        'duration_ms', o.completed_at_epoch_ms - o.started_at_epoch_ms)
    END,
    CASE WHEN p.part = 1 AND o.function_name <> 'DBOS.sleep' THEN CASE WHEN o.error IS NULL THEN 'result' ELSE 'error' END END,
    CASE WHEN p.part = 1 AND o.function_name <> 'DBOS.sleep' THEN COALESCE(o.output, o.error) END,
    o.serialization,
    'step:' || o.function_id || CASE WHEN p.part = 0 THEN ':begun:' ELSE ':done:' END || COALESCE(o.completed_at_epoch_ms, 0)
  FROM {schema}.operation_outputs AS o
  -- A sleep records when it ends: a number, or superjson that contains it.
  CROSS JOIN LATERAL (SELECT CASE WHEN o.function_name = 'DBOS.sleep'
    THEN SUBSTRING(o.output FROM '[0-9]{10,15}')::BIGINT END AS fire_at) AS f
  JOIN (VALUES (0), (1)) AS p(part)
    ON (p.part = 1 OR o.function_name = 'DBOS.sleep'
      OR (o.function_name NOT LIKE 'DBOS.%' AND o.child_workflow_id IS NULL))
    -- The timer of a wait is recorded before it ends, and says nothing of how the wait ended.
    AND (p.part = 0 OR o.function_name <> 'DBOS.sleep' OR (o.completed_at_epoch_ms >= f.fire_at
      AND f.fire_at <= FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT))
  -- Only the events of a sleep are stored one by one. Those of a step are looked for once, before they are told apart.
  WHERE CASE WHEN o.function_name = 'DBOS.sleep' THEN TRUE ELSE (
      SELECT 1 FROM {schema}.journal AS s
      WHERE s.workflow_id = o.workflow_uuid AND s.step = o.function_id AND s.completed_at = COALESCE(o.completed_at_epoch_ms, 0)
      LIMIT 1) IS NULL END
    AND CASE WHEN o.function_name = 'DBOS.sleep' THEN (
      SELECT 1 FROM {schema}.journal AS s
      WHERE s.workflow_id = o.workflow_uuid AND s.step = o.function_id AND s.completed_at = COALESCE(o.completed_at_epoch_ms, 0)
        AND (s.event_type = 'TimerFired') = (p.part = 1)
      LIMIT 1) IS NULL ELSE TRUE END
  UNION ALL
  SELECT n.destination_uuid, 1, n.created_at_epoch_ms, NULL, 0, 'SignalReceived', NULL, NULL,
    jsonb_build_object('signal_name', NULLIF(n.topic, '__null__topic__'), 'message_id', n.message_uuid),
    'input', n.message, n.serialization, 'message:' || n.message_uuid
  FROM {schema}.notifications AS n
  WHERE (
    SELECT 1 FROM {schema}.journal AS s WHERE s.workflow_id = n.destination_uuid AND s.key = 'message:' || n.message_uuid LIMIT 1) IS NULL
  UNION ALL
  SELECT w.workflow_uuid, 2, COALESCE(w.completed_at, w.updated_at), NULL, 0,
    CASE w.status WHEN 'SUCCESS' THEN 'WorkflowCompleted' WHEN 'ERROR' THEN 'WorkflowFailed' ELSE 'WorkflowCanceled' END,
    NULL, NULL, jsonb_build_object('duration_ms', COALESCE(w.completed_at, w.updated_at) - w.created_at),
    CASE w.status WHEN 'SUCCESS' THEN 'result' WHEN 'ERROR' THEN 'error' END,
    COALESCE(w.output, r.output, w.error, r.error), w.serialization, 'outcome:' || w.owner_xid
  FROM {schema}.workflow_status AS w
  LEFT JOIN {schema}.workflow_output AS r ON r.workflow_uuid = w.workflow_uuid
  WHERE (w.status IN ('SUCCESS', 'ERROR') OR (w.status = 'CANCELLED' AND COALESCE((
    SELECT j.event_type FROM {schema}.journal AS j
    WHERE j.workflow_id = w.workflow_uuid AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
    ORDER BY j.seq DESC LIMIT 1), '') <> 'WorkflowTimedOut'))
    AND (
      SELECT 1 FROM {schema}.journal AS s
      WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL
        AND ((s.owner = w.owner_xid AND s.event_type IN ('WorkflowCompleted', 'WorkflowFailed')) OR s.key = 'outcome:' || w.owner_xid)
      LIMIT 1) IS NULL
) AS d
UNION ALL
-- Before a workflow that was started under the same ID later.
SELECT g.workflow_uuid, 0, g.deleted_at, NULL::INTEGER, 0, NULL::BIGINT, 'WorkflowDeleted', NULL::INTEGER, NULL, g.actor,
  jsonb_strip_nulls(jsonb_build_object('workflow_name', g.name, 'reason', g.reason)), NULL, NULL, NULL,
  'deleted:' || g.deleted_at
FROM {schema}.deleted_workflows AS g;
`,
  },
  {
    number: 28,
    name: 'room_for_updates',
    isOnline: false,
    sql: `-- Nothing is found by the end of a lease: there are few engines. Without the index, and with room in the page, the renewal
-- of a lease touches no index.
DROP INDEX IF EXISTS {schema}.idx_executors_lease_until;
ALTER TABLE {schema}.executors SET (fillfactor = 50);
-- Every workflow is updated when it ends. Its new version then fits into the page of the old one, and the WAL holds only what
-- differs. Dead versions are removed after a twentieth of the rows has changed, not after a fifth.
ALTER TABLE {schema}.workflow_status SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);
`,
  },
  {
    number: 29,
    name: 'kept_history',
    isOnline: false,
    sql: `-- The history of a workflow stays with its export and its archived copy. Who deleted a workflow, and why, is a row of the
-- journal, so that readers who follow it see the deletion.
SET LOCAL lock_timeout = '3s';

-- Locks the original, so that it cannot be deleted before this row is committed. An import brings the rows of its workflows.
CREATE OR REPLACE FUNCTION {schema}.everstep_journal_fork() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
  note JSONB := NULLIF(current_setting('everstep.change', TRUE), '')::JSONB;
BEGIN
  IF note ->> 'source' = 'import' THEN
    RETURN NULL;
  END IF;
  INSERT INTO {schema}.journal (workflow_id, at, event_type, actor, details)
  SELECT w.workflow_uuid, NEW.created_at, 'WorkflowForked', note ->> 'actor', jsonb_strip_nulls(jsonb_build_object(
    'new_id', NEW.workflow_uuid, 'version', NEW.application_version, 'reason', note ->> 'reason'))
  FROM {schema}.workflow_status AS w
  WHERE w.workflow_uuid = NEW.forked_from
  FOR KEY SHARE OF w;
  RETURN NULL;
END;
$body$;

-- With the rights of its owner: another program's role need not know the journal.
CREATE OR REPLACE FUNCTION {schema}.everstep_journal_follow() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM {schema}.journal AS j WHERE j.workflow_id = OLD.workflow_uuid AND j.event_type <> 'WorkflowDeleted';
  ELSIF TG_OP = 'UPDATE' THEN
    UPDATE {schema}.journal AS j SET workflow_id = NEW.workflow_uuid WHERE j.workflow_id = OLD.workflow_uuid;
  ELSE
    DELETE FROM {schema}.journal;
  END IF;
  RETURN NULL;
END;
$body$;

-- Where no event is derived that is stored, a value is selected instead of NOT EXISTS: the planner would hash the whole
-- journal for that.
CREATE OR REPLACE VIEW {schema}.history AS
SELECT e.workflow_id,
  CASE
    WHEN e.part = 0 THEN 0
    -- Before a workflow that was started under the same ID later, and after what happened to one that was restored.
    WHEN e.event_type = 'WorkflowDeleted' THEN COALESCE((
      SELECT CASE WHEN n.created_at < e.at THEN 2 ELSE 0 END
      FROM {schema}.workflow_status AS n WHERE n.workflow_uuid = e.workflow_id), 0)
    ELSE 1
  END AS phase, e.at, e.step,
  CASE WHEN e.part = 2 OR (e.step IS NOT NULL AND e.event_type IN ('ActivityScheduled', 'TimerScheduled')) THEN 0 ELSE 1 END AS part,
  e.seq, e.event_type, e.attempt, e.executor, e.actor,
  CASE WHEN k.key IS NULL THEN e.details ELSE COALESCE(e.details, '{}'::JSONB) || k.details END AS details,
  CASE
    WHEN e.part = 0 THEN 'input'
    WHEN w.status = 'SUCCESS' OR (o.function_id IS NOT NULL AND o.error IS NULL) THEN 'result'
    WHEN w.status = 'ERROR' OR o.error IS NOT NULL THEN 'error'
  END AS payload_name,
  CASE
    WHEN e.part = 0 THEN w.inputs
    WHEN w.workflow_uuid IS NOT NULL THEN COALESCE(w.output, w.error)
    ELSE COALESCE(o.output, o.error)
  END AS payload,
  COALESCE(w.serialization, o.serialization) AS serialization, e.key
FROM {schema}.journal_events AS e
LEFT JOIN {schema}.operation_outputs AS o
  ON o.workflow_uuid = e.workflow_id AND o.function_id = e.step AND o.completed_at_epoch_ms = e.completed_at AND e.part = 3
  AND e.event_type NOT IN ('TimerScheduled', 'TimerFired')
LEFT JOIN {schema}.workflow_status AS w
  ON w.workflow_uuid = e.workflow_id AND (e.part = 0 OR (
    e.event_type IN ('WorkflowCompleted', 'WorkflowFailed') AND e.owner = w.owner_xid AND w.status IN ('SUCCESS', 'ERROR')))
-- What a rewind has deleted.
LEFT JOIN {schema}.journal AS k
  ON k.workflow_id = e.workflow_id AND k.key = CASE WHEN e.part = 3 AND e.completed_at IS NOT NULL THEN 'payload:' || e.seq END
UNION ALL
SELECT d.workflow_id, d.phase, d.at, d.step, d.part, NULL::BIGINT AS seq, d.event_type, d.attempt, d.executor, NULL AS actor,
  d.details, d.payload_name, d.payload, d.serialization, d.key
FROM (
  SELECT w.workflow_uuid AS workflow_id, 0 AS phase, w.created_at AS at, NULL::INTEGER AS step, 0 AS part,
    'WorkflowStarted' AS event_type, NULL::INTEGER AS attempt, NULL AS executor,
    jsonb_strip_nulls(jsonb_build_object(
      'workflow_name', w.name, 'class_name', NULLIF(w.class_name, ''), 'config_name', NULLIF(w.config_name, ''),
      'queue', w.queue_name, 'priority', w.priority, 'partition_key', w.queue_partition_key,
      'timeout_ms', w.workflow_timeout_ms, 'parent_id', w.parent_workflow_id, 'forked_from', w.forked_from,
      'schedule', w.schedule_name, 'version', w.application_version)) AS details,
    'input' AS payload_name, COALESCE(w.inputs, i.inputs) AS payload, w.serialization, 'started' AS key
  FROM {schema}.workflow_status AS w
  LEFT JOIN {schema}.workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
  WHERE (SELECT 1 FROM {schema}.journal AS s WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL AND s.event_type = 'WorkflowStarted' LIMIT 1) IS NULL
  UNION ALL
  SELECT w.workflow_uuid, 1, w.started_at_epoch_ms, NULL, 0, 'AttemptStarted', w.recovery_attempts::INTEGER, w.executor_id,
    jsonb_strip_nulls(jsonb_build_object('version', w.application_version, 'queue', w.queue_name)), NULL, NULL, NULL,
    'attempt:' || w.owner_xid
  FROM {schema}.workflow_status AS w
  WHERE w.started_at_epoch_ms IS NOT NULL AND w.status NOT IN ('ENQUEUED', 'DELAYED')
    AND (
      SELECT 1 FROM {schema}.journal AS s
      WHERE s.workflow_id = w.workflow_uuid AND s.attempt IS NOT NULL
        AND (s.owner = w.owner_xid OR s.key = 'attempt:' || w.owner_xid)
      LIMIT 1) IS NULL
  UNION ALL
  SELECT o.workflow_uuid, 1,
    CASE
      WHEN p.part = 0 THEN COALESCE(o.started_at_epoch_ms, o.completed_at_epoch_ms, o.retention_timestamp)
      WHEN o.function_name = 'DBOS.sleep' THEN COALESCE(f.fire_at, o.completed_at_epoch_ms, o.retention_timestamp)
      ELSE COALESCE(o.completed_at_epoch_ms, o.retention_timestamp)
    END,
    o.function_id, p.part,
    CASE
      WHEN o.function_name = 'DBOS.sleep' THEN CASE WHEN p.part = 0 THEN 'TimerScheduled' ELSE 'TimerFired' END
      WHEN p.part = 0 THEN 'ActivityScheduled'
      WHEN o.function_name = 'DBOS.getResult' THEN 'ChildWorkflowCompleted'
      WHEN o.child_workflow_id IS NOT NULL AND o.function_name NOT LIKE 'DBOS.%' THEN 'ChildWorkflowStarted'
      WHEN o.function_name = 'DBOS.recv' THEN CASE
        WHEN o.output IS NULL OR o.output = 'null' OR o.output LIKE '{"json":null%' THEN 'ReceiveTimedOut' ELSE 'MessageConsumed' END
      WHEN o.function_name = 'DBOS.setEvent' THEN 'EventSet'
      WHEN o.function_name = 'DBOS.closeStream' THEN 'StreamClosed'
      WHEN o.function_name LIKE 'DBOS.patch-%' THEN 'WorkflowPatched'
      WHEN o.function_name LIKE 'DBOS.%' THEN 'OperationCompleted'
      WHEN o.error IS NOT NULL THEN 'ActivityFailed'
      ELSE 'ActivityCompleted'
    END,
    NULL, NULL,
    CASE
      WHEN o.function_name = 'DBOS.sleep' THEN jsonb_build_object(
        'timer_id', o.workflow_uuid || ':' || o.function_id,
        CASE WHEN p.part = 0 THEN 'fire_at' ELSE 'fired_at' END, to_timestamp(f.fire_at / 1000.0))
      WHEN p.part = 0 THEN jsonb_build_object('activity_name', o.function_name, 'input', NULL)
      WHEN o.child_workflow_id IS NOT NULL THEN jsonb_build_object('child_id', o.child_workflow_id, 'name', o.function_name)
      WHEN o.function_name = 'DBOS.setEvent' THEN jsonb_build_object('key', (
        SELECT h.key FROM {schema}.workflow_events_history AS h
        WHERE h.workflow_uuid = o.workflow_uuid AND h.function_id = o.function_id LIMIT 1))
      WHEN o.function_name LIKE 'DBOS.patch-%' THEN jsonb_build_object('patch', SUBSTR(o.function_name, 12))
      WHEN o.function_name LIKE 'DBOS.%' THEN jsonb_build_object('operation', o.function_name)
      ELSE jsonb_build_object('activity_name', o.function_name,
        'duration_ms', o.completed_at_epoch_ms - o.started_at_epoch_ms)
    END,
    CASE WHEN p.part = 1 AND o.function_name <> 'DBOS.sleep' THEN CASE WHEN o.error IS NULL THEN 'result' ELSE 'error' END END,
    CASE WHEN p.part = 1 AND o.function_name <> 'DBOS.sleep' THEN COALESCE(o.output, o.error) END,
    o.serialization,
    'step:' || o.function_id || CASE WHEN p.part = 0 THEN ':begun:' ELSE ':done:' END || COALESCE(o.completed_at_epoch_ms, 0)
  FROM {schema}.operation_outputs AS o
  -- A sleep records when it ends: a number, or superjson that contains it.
  CROSS JOIN LATERAL (SELECT CASE WHEN o.function_name = 'DBOS.sleep'
    THEN SUBSTRING(o.output FROM '[0-9]{10,15}')::BIGINT END AS fire_at) AS f
  JOIN (VALUES (0), (1)) AS p(part)
    ON (p.part = 1 OR o.function_name = 'DBOS.sleep'
      OR (o.function_name NOT LIKE 'DBOS.%' AND o.child_workflow_id IS NULL))
    -- The timer of a wait is recorded before it ends, and says nothing of how the wait ended.
    AND (p.part = 0 OR o.function_name <> 'DBOS.sleep' OR (o.completed_at_epoch_ms >= f.fire_at
      AND f.fire_at <= FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT))
  -- Only the events of a sleep are stored one by one. Those of a step are looked for once, before they are told apart.
  WHERE CASE WHEN o.function_name = 'DBOS.sleep' THEN TRUE ELSE (
      SELECT 1 FROM {schema}.journal AS s
      WHERE s.workflow_id = o.workflow_uuid AND s.step = o.function_id AND s.completed_at = COALESCE(o.completed_at_epoch_ms, 0)
      LIMIT 1) IS NULL END
    AND CASE WHEN o.function_name = 'DBOS.sleep' THEN (
      SELECT 1 FROM {schema}.journal AS s
      WHERE s.workflow_id = o.workflow_uuid AND s.step = o.function_id AND s.completed_at = COALESCE(o.completed_at_epoch_ms, 0)
        AND (s.event_type = 'TimerFired') = (p.part = 1)
      LIMIT 1) IS NULL ELSE TRUE END
  UNION ALL
  SELECT n.destination_uuid, 1, n.created_at_epoch_ms, NULL, 0, 'SignalReceived', NULL, NULL,
    jsonb_build_object('signal_name', NULLIF(n.topic, '__null__topic__'), 'message_id', n.message_uuid),
    'input', n.message, n.serialization, 'message:' || n.message_uuid
  FROM {schema}.notifications AS n
  WHERE (
    SELECT 1 FROM {schema}.journal AS s WHERE s.workflow_id = n.destination_uuid AND s.key = 'message:' || n.message_uuid LIMIT 1) IS NULL
  UNION ALL
  SELECT w.workflow_uuid, 2, COALESCE(w.completed_at, w.updated_at), NULL, 0,
    CASE w.status WHEN 'SUCCESS' THEN 'WorkflowCompleted' WHEN 'ERROR' THEN 'WorkflowFailed' ELSE 'WorkflowCanceled' END,
    NULL, NULL, jsonb_build_object('duration_ms', COALESCE(w.completed_at, w.updated_at) - w.created_at),
    CASE w.status WHEN 'SUCCESS' THEN 'result' WHEN 'ERROR' THEN 'error' END,
    COALESCE(w.output, r.output, w.error, r.error), w.serialization, 'outcome:' || w.owner_xid
  FROM {schema}.workflow_status AS w
  LEFT JOIN {schema}.workflow_output AS r ON r.workflow_uuid = w.workflow_uuid
  WHERE (w.status IN ('SUCCESS', 'ERROR') OR (w.status = 'CANCELLED' AND COALESCE((
    SELECT j.event_type FROM {schema}.journal AS j
    WHERE j.workflow_id = w.workflow_uuid AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
    ORDER BY j.seq DESC LIMIT 1), '') <> 'WorkflowTimedOut'))
    AND (
      SELECT 1 FROM {schema}.journal AS s
      WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL
        AND ((s.owner = w.owner_xid AND s.event_type IN ('WorkflowCompleted', 'WorkflowFailed')) OR s.key = 'outcome:' || w.owner_xid)
      LIMIT 1) IS NULL
) AS d;

-- Missing if this runs again.
CREATE TABLE IF NOT EXISTS {schema}.deleted_workflows (
  workflow_uuid TEXT NOT NULL,
  deleted_at BIGINT NOT NULL,
  name TEXT,
  actor TEXT,
  reason TEXT,
  PRIMARY KEY (workflow_uuid, deleted_at)
);
INSERT INTO {schema}.journal (workflow_id, at, event_type, actor, details)
SELECT g.workflow_uuid, g.deleted_at, 'WorkflowDeleted', g.actor,
  jsonb_strip_nulls(jsonb_build_object('workflow_name', g.name, 'reason', g.reason))
FROM {schema}.deleted_workflows AS g
ORDER BY g.workflow_uuid, g.deleted_at;
DROP TABLE {schema}.deleted_workflows;
`,
  },
  {
    number: 30,
    name: 'checkpoints_without_key',
    isOnline: false,
    sql: `-- The check of the foreign key took more than a third of the time of writing a checkpoint. Everstep locks the workflow's row
-- in the same statement anyway. The checkpoints of other programs are checked by a trigger instead, and triggers delete
-- checkpoints with their workflow and follow a change of its ID.
-- Dropping the key locks both tables, and all programs would wait behind it. Give up and retry instead.
SET LOCAL lock_timeout = '3s';

CREATE OR REPLACE FUNCTION {schema}.everstep_check_step() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
BEGIN
  PERFORM 1 FROM {schema}.workflow_status AS w WHERE w.workflow_uuid = NEW.workflow_uuid FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE foreign_key_violation USING
      MESSAGE = format('workflow "%s" of a step does not exist', NEW.workflow_uuid),
      CONSTRAINT = 'operation_outputs_workflow_uuid_fkey';
  END IF;
  RETURN NULL;
END;
$body$;

CREATE OR REPLACE TRIGGER everstep_step_checked
AFTER INSERT OR UPDATE OF workflow_uuid ON {schema}.operation_outputs
FOR EACH ROW WHEN (current_setting('everstep.quiet', TRUE) IS DISTINCT FROM 'on')
EXECUTE FUNCTION {schema}.everstep_check_step();

-- With the rights of its owner: another program's role need not know the journal.
CREATE OR REPLACE FUNCTION {schema}.everstep_journal_follow() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
AS $body$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM {schema}.operation_outputs AS o WHERE o.workflow_uuid = OLD.workflow_uuid;
    DELETE FROM {schema}.journal AS j WHERE j.workflow_id = OLD.workflow_uuid AND j.event_type <> 'WorkflowDeleted';
  ELSIF TG_OP = 'UPDATE' THEN
    UPDATE {schema}.operation_outputs AS o SET workflow_uuid = NEW.workflow_uuid WHERE o.workflow_uuid = OLD.workflow_uuid;
    UPDATE {schema}.journal AS j SET workflow_id = NEW.workflow_uuid WHERE j.workflow_id = OLD.workflow_uuid;
  ELSE
    DELETE FROM {schema}.operation_outputs;
    DELETE FROM {schema}.journal;
  END IF;
  RETURN NULL;
END;
$body$;

-- The second is what DBOS for TypeScript called it.
ALTER TABLE {schema}.operation_outputs DROP CONSTRAINT IF EXISTS operation_outputs_workflow_uuid_fkey;
ALTER TABLE {schema}.operation_outputs DROP CONSTRAINT IF EXISTS operation_outputs_workflow_uuid_foreign;
`,
  },
  {
    number: 31,
    name: 'orphaned_checkpoints',
    isOnline: false,
    sql: `-- Checkpoints that DBOS has left behind: it has dropped the foreign key, and deletes workflows before their checkpoints. A new
-- workflow with such an ID would replay them. From migration 30 on, a trigger deletes checkpoints with their workflow.
DELETE FROM {schema}.operation_outputs AS o
WHERE NOT EXISTS (SELECT 1 FROM {schema}.workflow_status AS w WHERE w.workflow_uuid = o.workflow_uuid);
`,
  },
  {
    number: 32,
    name: 'unstarted_attempts',
    isOnline: false,
    sql: `-- A workflow that was claimed before there was a slot for it, and goes back to its queue before it has started, has lost no
-- attempt.
SET LOCAL lock_timeout = '3s';

-- The condition is evaluated before anything is called or queued. A workflow that just runs does not meet it.
CREATE OR REPLACE TRIGGER everstep_workflow_journaled
AFTER UPDATE ON {schema}.workflow_status
FOR EACH ROW
WHEN (
  (OLD.status IS DISTINCT FROM NEW.status AND (
    NEW.status IN ('CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED')
    OR (OLD.status = 'PENDING' AND NEW.status IN ('ENQUEUED', 'DELAYED')
      AND (OLD.started_at_epoch_ms IS NOT NULL OR OLD.queue_name IS NULL OR NEW.status = 'DELAYED'))
    OR (OLD.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING') AND NEW.status IN ('ENQUEUED', 'DELAYED', 'PENDING'))))
  OR (OLD.status IN ('ENQUEUED', 'DELAYED') AND NEW.status IN ('ENQUEUED', 'DELAYED')
    AND OLD.delay_until_epoch_ms IS DISTINCT FROM NEW.delay_until_epoch_ms)
  OR (OLD.priority <> NEW.priority AND NEW.status IN ('ENQUEUED', 'DELAYED', 'PENDING'))
)
EXECUTE FUNCTION {schema}.everstep_journal_change();
`,
  },
  {
    number: 33,
    name: 'running_index',
    isOnline: true,
    sql: `-- online
-- One index of running workflows instead of two. They are few, so those who look for all of them sort what they find: an index
-- in the order of creation cost each claim and each start a write, and the removal of entries that had died.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_running
  ON {schema}.workflow_status (owner_xid COLLATE "C")
  WHERE status = 'PENDING';
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_workflow_status_owner;
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_workflow_status_pending;
`,
  },
  {
    number: 34,
    name: 'optional_queue_index',
    isOnline: true,
    sql: `-- online
-- The index for lists by queue is optional (\`everstep index create queueName\`). It cost each workflow of a queue three writes,
-- about a tenth of what the workflow costs the server in all.
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_workflow_status_listing_queue;
`,
  },
  {
    number: 35,
    name: 'checked_steps',
    isOnline: false,
    sql: `-- A transaction in the system database writes its checkpoint over a connection of the application. That statement has locked
-- the workflow's row, and names the workflow in everstep.checked: the trigger would look it up once more, which took two
-- thirds of the statement's time.
SET LOCAL lock_timeout = '3s';

CREATE OR REPLACE TRIGGER everstep_step_checked
AFTER INSERT OR UPDATE OF workflow_uuid ON {schema}.operation_outputs
FOR EACH ROW WHEN (
  current_setting('everstep.quiet', TRUE) IS DISTINCT FROM 'on'
  AND current_setting('everstep.checked', TRUE) IS DISTINCT FROM NEW.workflow_uuid
)
EXECUTE FUNCTION {schema}.everstep_check_step();
`,
  },
];

export const SQLITE_MIGRATIONS: readonly Migration[] = [
  {
    number: 1,
    name: 'initial_tables',
    isOnline: false,
    sql: `-- The first tables: workflows and what hangs on them. A row of workflow_status is one workflow; the other
-- tables hold its checkpoints, messages, events and stream values and are deleted with it. event_dispatch_kv
-- is the memory of event receivers and belongs to no workflow.
CREATE TABLE IF NOT EXISTS workflow_status (
  workflow_uuid TEXT NOT NULL PRIMARY KEY,
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
  created_at BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  updated_at BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
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
  priority INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX IF NOT EXISTS workflow_status_created_at_index ON workflow_status (created_at);
CREATE INDEX IF NOT EXISTS workflow_status_executor_id_index ON workflow_status (executor_id);
CREATE INDEX IF NOT EXISTS workflow_status_status_index ON workflow_status (status);

-- An index and not a constraint of the table, because SQLite cannot drop a constraint.
CREATE UNIQUE INDEX IF NOT EXISTS uq_workflow_status_queue_name_dedup_id
  ON workflow_status (queue_name, deduplication_id);

CREATE TABLE IF NOT EXISTS operation_outputs (
  workflow_uuid TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  function_id INTEGER NOT NULL,
  function_name TEXT NOT NULL DEFAULT '',
  output TEXT,
  error TEXT,
  child_workflow_id TEXT,
  PRIMARY KEY (workflow_uuid, function_id)
);

CREATE TABLE IF NOT EXISTS notifications (
  message_uuid TEXT NOT NULL PRIMARY KEY DEFAULT (
    lower(hex(randomblob(4))) || '-' || lower(hex(randomblob(2))) || '-4' || substr(lower(hex(randomblob(2))), 2)
    || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(lower(hex(randomblob(2))), 2)
    || '-' || lower(hex(randomblob(6)))
  ),
  destination_uuid TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  topic TEXT,
  message TEXT NOT NULL,
  created_at_epoch_ms BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
);

CREATE INDEX IF NOT EXISTS idx_workflow_topic ON notifications (destination_uuid, topic);

CREATE TABLE IF NOT EXISTS workflow_events (
  workflow_uuid TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (workflow_uuid, key)
);

CREATE TABLE IF NOT EXISTS streams (
  workflow_uuid TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  "offset" INTEGER NOT NULL,
  PRIMARY KEY (workflow_uuid, key, "offset")
);

CREATE TABLE IF NOT EXISTS event_dispatch_kv (
  service_name TEXT NOT NULL,
  workflow_fn_name TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT,
  update_seq NUMERIC(38, 0),
  update_time NUMERIC(38, 15),
  PRIMARY KEY (service_name, workflow_fn_name, key)
);
`,
  },
  {
    number: 2,
    name: 'queue_partition_key',
    isOnline: false,
    sql: `-- A partitioned queue keeps its limits for each partition key apart.
ALTER TABLE workflow_status ADD COLUMN queue_partition_key TEXT;
`,
  },
  {
    number: 3,
    name: 'queue_status_index',
    isOnline: false,
    sql: `-- Claims and rate limits look for a queue's workflows by state and start time.
CREATE INDEX IF NOT EXISTS idx_workflow_status_queue_status_started
  ON workflow_status (queue_name, status, started_at_epoch_ms);
`,
  },
  {
    number: 4,
    name: 'forked_from',
    isOnline: false,
    sql: `-- A fork remembers the workflow it was made from, and the forks of a workflow can be found.
ALTER TABLE workflow_status ADD COLUMN forked_from TEXT;
CREATE INDEX IF NOT EXISTS idx_workflow_status_forked_from ON workflow_status (forked_from);
`,
  },
  {
    number: 5,
    name: 'operation_timing',
    isOnline: false,
    sql: `-- A checkpoint tells when its step started and when it completed.
ALTER TABLE operation_outputs ADD COLUMN started_at_epoch_ms BIGINT;
ALTER TABLE operation_outputs ADD COLUMN completed_at_epoch_ms BIGINT;
`,
  },
  {
    number: 6,
    name: 'workflow_events_history',
    isOnline: false,
    sql: `-- Every value that an event has had, by the step that set it, so that a fork can take over the events as they
-- were at its first step. For the same reason a stream value remembers the step that wrote it.
CREATE TABLE IF NOT EXISTS workflow_events_history (
  workflow_uuid TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  function_id INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (workflow_uuid, function_id, key)
);

ALTER TABLE streams ADD COLUMN function_id INTEGER NOT NULL DEFAULT 0;
`,
  },
  {
    number: 7,
    name: 'owner_xid',
    isOnline: false,
    sql: `-- The fencing token of the run that owns the workflow.
ALTER TABLE workflow_status ADD COLUMN owner_xid TEXT;
`,
  },
  {
    number: 8,
    name: 'parent_workflow_id',
    isOnline: false,
    sql: `-- A child workflow remembers its parent, and the children of a workflow can be found.
ALTER TABLE workflow_status ADD COLUMN parent_workflow_id TEXT;
CREATE INDEX IF NOT EXISTS idx_workflow_status_parent_workflow_id ON workflow_status (parent_workflow_id);
`,
  },
  {
    number: 9,
    name: 'workflow_schedules',
    isOnline: false,
    sql: `-- Schedules that are kept in the database: which workflow to start, and when.
CREATE TABLE IF NOT EXISTS workflow_schedules (
  schedule_id TEXT NOT NULL PRIMARY KEY,
  schedule_name TEXT NOT NULL UNIQUE,
  workflow_name TEXT NOT NULL,
  workflow_class_name TEXT,
  schedule TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'ACTIVE',
  context TEXT NOT NULL
);
`,
  },
  {
    number: 11,
    name: 'serialization',
    isOnline: false,
    sql: `-- Every stored value names the format it is written in. NULL means the application's own serializer.
ALTER TABLE workflow_status ADD COLUMN serialization TEXT;
ALTER TABLE operation_outputs ADD COLUMN serialization TEXT;
ALTER TABLE notifications ADD COLUMN serialization TEXT;
ALTER TABLE workflow_events ADD COLUMN serialization TEXT;
ALTER TABLE workflow_events_history ADD COLUMN serialization TEXT;
ALTER TABLE streams ADD COLUMN serialization TEXT;
`,
  },
  {
    number: 12,
    name: 'consumed_notifications',
    isOnline: false,
    sql: `-- A received message is marked, not deleted, so that it can be inspected later.
ALTER TABLE notifications ADD COLUMN consumed BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX IF NOT EXISTS idx_notifications ON notifications (destination_uuid, topic);
`,
  },
  {
    number: 13,
    name: 'application_versions',
    isOnline: false,
    sql: `-- The versions of the application that have been launched. The latest is the one with the highest
-- version_timestamp, which an operator can move; created_at never changes.
CREATE TABLE IF NOT EXISTS application_versions (
  version_id TEXT NOT NULL PRIMARY KEY,
  version_name TEXT NOT NULL UNIQUE,
  version_timestamp BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  created_at BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
);
`,
  },
  {
    number: 15,
    name: 'schedule_enhancements',
    isOnline: false,
    sql: `-- A schedule knows when it fired last, whether to make up for missed times, and in which time zone it counts.
ALTER TABLE workflow_schedules ADD COLUMN last_fired_at TEXT;
ALTER TABLE workflow_schedules ADD COLUMN automatic_backfill BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE workflow_schedules ADD COLUMN cron_timezone TEXT;
`,
  },
  {
    number: 16,
    name: 'delayed_workflows',
    isOnline: false,
    sql: `-- A workflow can be enqueued with a delay. It stays DELAYED until its time has come; the index finds those due.
ALTER TABLE workflow_status ADD COLUMN delay_until_epoch_ms BIGINT;
CREATE INDEX IF NOT EXISTS idx_workflow_status_delayed
  ON workflow_status (delay_until_epoch_ms)
  WHERE status = 'DELAYED';
`,
  },
  {
    number: 17,
    name: 'schedule_queue_name',
    isOnline: false,
    sql: `-- The queue that a schedule's workflows go to. NULL means the internal queue.
ALTER TABLE workflow_schedules ADD COLUMN queue_name TEXT;
`,
  },
  {
    number: 18,
    name: 'was_forked_from',
    isOnline: false,
    sql: `-- Tells of a workflow, without a search, whether any fork was ever made from it.
ALTER TABLE workflow_status ADD COLUMN was_forked_from BOOLEAN NOT NULL DEFAULT FALSE;
`,
  },
  {
    number: 19,
    name: 'completed_at_function_name_index',
    isOnline: false,
    sql: `-- Metrics count checkpoints by time and step name.
CREATE INDEX IF NOT EXISTS idx_operation_outputs_completed_at_function_name
  ON operation_outputs (completed_at_epoch_ms, function_name);
`,
  },
  {
    number: 21,
    name: 'queues',
    isOnline: false,
    sql: `-- Queues that are kept in the database, so that their limits can be changed while workers run.
CREATE TABLE IF NOT EXISTS queues (
  queue_id TEXT NOT NULL PRIMARY KEY DEFAULT (
    lower(hex(randomblob(4))) || '-' || lower(hex(randomblob(2))) || '-4' || substr(lower(hex(randomblob(2))), 2)
    || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(lower(hex(randomblob(2))), 2)
    || '-' || lower(hex(randomblob(6)))
  ),
  name TEXT NOT NULL UNIQUE,
  concurrency INTEGER,
  worker_concurrency INTEGER,
  rate_limit_max INTEGER,
  rate_limit_period_sec REAL,
  priority_enabled BOOLEAN NOT NULL DEFAULT FALSE,
  partition_queue BOOLEAN NOT NULL DEFAULT FALSE,
  polling_interval_sec REAL NOT NULL DEFAULT 1.0,
  created_at BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  updated_at BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
);
`,
  },
  {
    number: 22,
    name: 'partial_forked_from_index',
    isOnline: false,
    sql: `-- Few workflows are forks: the index need not hold the others.
DROP INDEX IF EXISTS idx_workflow_status_forked_from;
CREATE INDEX IF NOT EXISTS idx_workflow_status_forked_from
  ON workflow_status (forked_from)
  WHERE forked_from IS NOT NULL;
`,
  },
  {
    number: 23,
    name: 'partial_parent_workflow_id_index',
    isOnline: false,
    sql: `-- Few workflows are children: the index need not hold the others.
DROP INDEX IF EXISTS idx_workflow_status_parent_workflow_id;
CREATE INDEX IF NOT EXISTS idx_workflow_status_parent_workflow_id
  ON workflow_status (parent_workflow_id)
  WHERE parent_workflow_id IS NOT NULL;
`,
  },
  {
    number: 24,
    name: 'shared_base',
    isOnline: false,
    sql: `-- Brings the tables to the state that all languages share at version 100. Below 100 every language has numbers
-- of its own, so a database below 100 that another library has left says little by its number: everything added
-- since the first tables is stated again here, and every statement does nothing where its work is done (the
-- runner leaves out an ADD COLUMN whose column exists). The claims get partial indexes that hold only what is in
-- flight; the indexes they replace go.
ALTER TABLE workflow_status ADD COLUMN queue_partition_key TEXT;
ALTER TABLE workflow_status ADD COLUMN forked_from TEXT;
ALTER TABLE workflow_status ADD COLUMN owner_xid TEXT;
ALTER TABLE workflow_status ADD COLUMN parent_workflow_id TEXT;
ALTER TABLE workflow_status ADD COLUMN serialization TEXT;
ALTER TABLE workflow_status ADD COLUMN delay_until_epoch_ms BIGINT;
ALTER TABLE workflow_status ADD COLUMN was_forked_from BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE workflow_status ADD COLUMN rate_limited BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE workflow_status ADD COLUMN completed_at BIGINT;
ALTER TABLE workflow_status ADD COLUMN attributes TEXT;
ALTER TABLE workflow_status ADD COLUMN schedule_name TEXT;
ALTER TABLE workflow_status ADD COLUMN debounce_deadline_epoch_ms BIGINT;
ALTER TABLE workflow_status ADD COLUMN is_debounced BOOLEAN NOT NULL DEFAULT FALSE;

ALTER TABLE operation_outputs ADD COLUMN started_at_epoch_ms BIGINT;
ALTER TABLE operation_outputs ADD COLUMN completed_at_epoch_ms BIGINT;
ALTER TABLE operation_outputs ADD COLUMN serialization TEXT;

ALTER TABLE notifications ADD COLUMN serialization TEXT;
ALTER TABLE notifications ADD COLUMN consumed BOOLEAN NOT NULL DEFAULT FALSE;

ALTER TABLE workflow_events ADD COLUMN serialization TEXT;

ALTER TABLE streams ADD COLUMN function_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE streams ADD COLUMN serialization TEXT;

CREATE TABLE IF NOT EXISTS workflow_events_history (
  workflow_uuid TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  function_id INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (workflow_uuid, function_id, key)
);

ALTER TABLE workflow_events_history ADD COLUMN serialization TEXT;

CREATE TABLE IF NOT EXISTS workflow_schedules (
  schedule_id TEXT NOT NULL PRIMARY KEY,
  schedule_name TEXT NOT NULL UNIQUE,
  workflow_name TEXT NOT NULL,
  workflow_class_name TEXT,
  schedule TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'ACTIVE',
  context TEXT NOT NULL
);

ALTER TABLE workflow_schedules ADD COLUMN last_fired_at TEXT;
ALTER TABLE workflow_schedules ADD COLUMN automatic_backfill BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE workflow_schedules ADD COLUMN cron_timezone TEXT;
ALTER TABLE workflow_schedules ADD COLUMN queue_name TEXT;

CREATE TABLE IF NOT EXISTS application_versions (
  version_id TEXT NOT NULL PRIMARY KEY,
  version_name TEXT NOT NULL UNIQUE,
  version_timestamp BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  created_at BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
);

CREATE TABLE IF NOT EXISTS queues (
  queue_id TEXT NOT NULL PRIMARY KEY DEFAULT (
    lower(hex(randomblob(4))) || '-' || lower(hex(randomblob(2))) || '-4' || substr(lower(hex(randomblob(2))), 2)
    || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(lower(hex(randomblob(2))), 2)
    || '-' || lower(hex(randomblob(6)))
  ),
  name TEXT NOT NULL UNIQUE,
  concurrency INTEGER,
  worker_concurrency INTEGER,
  rate_limit_max INTEGER,
  rate_limit_period_sec REAL,
  priority_enabled BOOLEAN NOT NULL DEFAULT FALSE,
  partition_queue BOOLEAN NOT NULL DEFAULT FALSE,
  polling_interval_sec REAL NOT NULL DEFAULT 1.0,
  created_at BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  updated_at BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
);

-- These two may still hold every workflow, in a database that another library has left.
DROP INDEX IF EXISTS idx_workflow_status_forked_from;
CREATE INDEX IF NOT EXISTS idx_workflow_status_forked_from
  ON workflow_status (forked_from)
  WHERE forked_from IS NOT NULL;
DROP INDEX IF EXISTS idx_workflow_status_parent_workflow_id;
CREATE INDEX IF NOT EXISTS idx_workflow_status_parent_workflow_id
  ON workflow_status (parent_workflow_id)
  WHERE parent_workflow_id IS NOT NULL;

CREATE INDEX IF NOT EXISTS idx_workflow_status_delayed
  ON workflow_status (delay_until_epoch_ms)
  WHERE status = 'DELAYED';
CREATE INDEX IF NOT EXISTS idx_workflow_status_pending
  ON workflow_status (created_at)
  WHERE status = 'PENDING';
CREATE INDEX IF NOT EXISTS idx_workflow_status_failed
  ON workflow_status (status, created_at)
  WHERE status IN ('ERROR', 'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED');
CREATE INDEX IF NOT EXISTS idx_workflow_status_in_flight
  ON workflow_status (queue_name, status, priority, created_at)
  WHERE status IN ('ENQUEUED', 'PENDING');
CREATE INDEX IF NOT EXISTS idx_workflow_status_partition_dequeue_v2
  ON workflow_status (queue_name, status, queue_partition_key, priority, created_at, workflow_uuid)
  WHERE status IN ('ENQUEUED', 'PENDING') AND queue_partition_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_workflow_status_rate_limited
  ON workflow_status (queue_name, started_at_epoch_ms)
  WHERE rate_limited = TRUE;
CREATE INDEX IF NOT EXISTS idx_workflow_status_started_at
  ON workflow_status (started_at_epoch_ms)
  WHERE started_at_epoch_ms IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_workflow_status_completed_at
  ON workflow_status (completed_at)
  WHERE completed_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_workflow_status_schedule_name
  ON workflow_status (schedule_name)
  WHERE schedule_name IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_operation_outputs_completed_at_function_name
  ON operation_outputs (completed_at_epoch_ms, function_name);

CREATE UNIQUE INDEX IF NOT EXISTS uq_workflow_status_dedup_id
  ON workflow_status (queue_name, deduplication_id)
  WHERE deduplication_id IS NOT NULL;
DROP INDEX IF EXISTS uq_workflow_status_queue_name_dedup_id;

DROP INDEX IF EXISTS workflow_status_executor_id_index;
DROP INDEX IF EXISTS workflow_status_status_index;
DROP INDEX IF EXISTS idx_workflow_status_queue_status_started;
DROP INDEX IF EXISTS idx_workflow_status_partition_dequeue;
`,
  },
  {
    number: 100,
    name: 'workflow_status_application_name',
    isOnline: false,
    sql: `-- Several applications can share one database: a workflow belongs to the application it names. NULL is
-- everybody's.
ALTER TABLE workflow_status ADD COLUMN application_name TEXT;
`,
  },
  {
    number: 101,
    name: 'queues_application_name',
    isOnline: false,
    sql: `-- A queue belongs to the application it names.
ALTER TABLE queues ADD COLUMN application_name TEXT;
`,
  },
  {
    number: 102,
    name: 'workflow_schedules_application_name',
    isOnline: false,
    sql: `-- A schedule belongs to the application it names.
ALTER TABLE workflow_schedules ADD COLUMN application_name TEXT;
`,
  },
  {
    number: 103,
    name: 'application_versions_application_name',
    isOnline: false,
    sql: `-- A version belongs to the application it names.
ALTER TABLE application_versions ADD COLUMN application_name TEXT;
`,
  },
  {
    number: 104,
    name: 'operation_outputs_application_name',
    isOnline: false,
    sql: `-- A checkpoint repeats the application of its workflow, so that it can be counted without a join.
ALTER TABLE operation_outputs ADD COLUMN application_name TEXT;
`,
  },
  {
    number: 105,
    name: 'enqueue_workflow_application_name',
    isOnline: false,
    sql: `-- Empty on purpose: SQLite has no stored functions.
`,
  },
  {
    number: 106,
    name: 'owned_version_names',
    isOnline: false,
    sql: `-- Within one application a version name is used once.
CREATE UNIQUE INDEX IF NOT EXISTS uq_application_versions_owner_version
  ON application_versions (application_name, version_name)
  WHERE application_name IS NOT NULL;
`,
  },
  {
    number: 107,
    name: 'unowned_version_names',
    isOnline: false,
    sql: `-- Among the versions that belong to no application a version name is used once.
CREATE UNIQUE INDEX IF NOT EXISTS uq_application_versions_unclaimed_version
  ON application_versions (version_name)
  WHERE application_name IS NULL;
`,
  },
  {
    number: 108,
    name: 'queue_partition_limits',
    isOnline: false,
    sql: `-- Limits that hold for each partition of a queue.
ALTER TABLE queues ADD COLUMN partition_concurrency INTEGER;
ALTER TABLE queues ADD COLUMN partition_worker_concurrency INTEGER;
ALTER TABLE queues ADD COLUMN partition_rate_limit_max INTEGER;
ALTER TABLE queues ADD COLUMN partition_rate_limit_period_sec REAL;
`,
  },
  {
    number: 109,
    name: 'workflow_input_and_output',
    isOnline: false,
    sql: `-- Input and outcome in tables of their own, which can be kept or deleted apart from the workflow. Everstep
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
`,
  },
  {
    number: 110,
    name: 'operation_outputs_retention',
    isOnline: false,
    sql: `-- The time that the retention of a checkpoint counts from. SQLite adds no column whose default is computed, so
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
`,
  },
  {
    number: 111,
    name: 'operation_outputs_retention_index',
    isOnline: false,
    sql: `-- Retention finds old checkpoints by their time.
CREATE INDEX IF NOT EXISTS idx_operation_outputs_retention
  ON operation_outputs (retention_timestamp);
`,
  },
  {
    number: 112,
    name: 'operation_outputs_foreign_key',
    isOnline: false,
    sql: `-- Empty on purpose. Other libraries drop the foreign key of operation_outputs here. Everstep keeps it where it
-- is: checkpoints are deleted with their workflow, and a checkpoint without a workflow cannot be written.
`,
  },
  {
    number: 113,
    name: 'enqueue_workflow_input',
    isOnline: false,
    sql: `-- Empty on purpose: SQLite has no stored functions.
`,
  },
  {
    number: 114,
    name: 'drop_notifications_index',
    isOnline: false,
    sql: `-- idx_workflow_topic has the same columns.
DROP INDEX IF EXISTS idx_notifications;
`,
  },
  {
    number: 115,
    name: 'in_flight_index_v2',
    isOnline: false,
    sql: `-- The counterpart of the Postgres index of that name. That one carries application_name besides; SQLite has no
-- INCLUDE.
CREATE INDEX IF NOT EXISTS idx_workflow_status_in_flight_v2
  ON workflow_status (queue_name, status, priority, created_at)
  WHERE status IN ('ENQUEUED', 'PENDING');
`,
  },
  {
    number: 116,
    name: 'drop_in_flight_index',
    isOnline: false,
    sql: `-- Replaced by idx_workflow_status_in_flight_v2.
DROP INDEX IF EXISTS idx_workflow_status_in_flight;
`,
  },
  {
    number: 117,
    name: 'partition_dequeue_index_v3',
    isOnline: false,
    sql: `-- The counterpart of the Postgres index of that name. That one carries application_name besides; SQLite has no
-- INCLUDE.
CREATE INDEX IF NOT EXISTS idx_workflow_status_partition_dequeue_v3
  ON workflow_status (queue_name, status, queue_partition_key, priority, created_at, workflow_uuid)
  WHERE status IN ('ENQUEUED', 'PENDING') AND queue_partition_key IS NOT NULL;
`,
  },
  {
    number: 118,
    name: 'drop_partition_dequeue_index_v2',
    isOnline: false,
    sql: `-- Replaced by idx_workflow_status_partition_dequeue_v3.
DROP INDEX IF EXISTS idx_workflow_status_partition_dequeue_v2;
`,
  },
  {
    number: 119,
    name: 'completed_at_function_name_index_v2',
    isOnline: false,
    sql: `-- The counterpart of the Postgres index of that name. That one carries application_name besides; SQLite has no
-- INCLUDE.
CREATE INDEX IF NOT EXISTS idx_operation_outputs_completed_at_function_name_v2
  ON operation_outputs (completed_at_epoch_ms, function_name);
`,
  },
  {
    number: 120,
    name: 'drop_completed_at_function_name_index',
    isOnline: false,
    sql: `-- Replaced by idx_operation_outputs_completed_at_function_name_v2.
DROP INDEX IF EXISTS idx_operation_outputs_completed_at_function_name;
`,
  },
  {
    number: 121,
    name: 'consumed_by_function_id',
    isOnline: false,
    sql: `-- A received message remembers the step that received it.
ALTER TABLE notifications ADD COLUMN consumed_by_function_id INTEGER;
`,
  },
  {
    number: 122,
    name: 'deadline_index',
    isOnline: false,
    sql: `-- Finds the unfinished workflows whose deadline has passed.
CREATE INDEX IF NOT EXISTS idx_workflow_status_deadline
  ON workflow_status (workflow_deadline_epoch_ms)
  WHERE status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND workflow_deadline_epoch_ms IS NOT NULL;
`,
  },
  {
    number: 123,
    name: 'creator_xid',
    isOnline: false,
    sql: `-- The token of the call that created the workflow. Unlike owner_xid it never changes.
ALTER TABLE workflow_status ADD COLUMN creator_xid TEXT;
`,
  },
];

export const SQLITE_EVERSTEP_MIGRATIONS: readonly Migration[] = [
  {
    number: 1,
    name: 'executors',
    isOnline: false,
    sql: `-- The engines that are or were running: one row for each launch. An engine prolongs its lease by the database's
-- clock; when the lease has ended, any other engine takes over its workflows.
CREATE TABLE IF NOT EXISTS executors (
  incarnation_id TEXT NOT NULL PRIMARY KEY,
  executor_id TEXT NOT NULL,
  application_name TEXT,
  application_version TEXT,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  started_at BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  heartbeat_at BIGINT NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
  lease_until_epoch_ms BIGINT NOT NULL,
  metadata TEXT
);

CREATE INDEX IF NOT EXISTS idx_executors_lease_until ON executors (lease_until_epoch_ms);
CREATE INDEX IF NOT EXISTS idx_executors_executor_id ON executors (executor_id);
`,
  },
  {
    number: 2,
    name: 'event_dispatch_kv',
    isOnline: false,
    sql: `-- A file that another library has brought to 100 or beyond has no event_dispatch_kv.
CREATE TABLE IF NOT EXISTS event_dispatch_kv (
  service_name TEXT NOT NULL,
  workflow_fn_name TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT,
  update_seq NUMERIC(38, 0),
  update_time NUMERIC(38, 15),
  PRIMARY KEY (service_name, workflow_fn_name, key)
);
`,
  },
  {
    number: 3,
    name: 'paused_queues',
    isOnline: false,
    sql: `-- Queues that nobody takes workflows from for now.
CREATE TABLE IF NOT EXISTS paused_queues (
  name TEXT NOT NULL PRIMARY KEY,
  paused_at BIGINT NOT NULL
);
`,
  },
  {
    number: 4,
    name: 'quiet_notifications',
    isOnline: false,
    sql: `-- Empty on purpose: SQLite has no notifications.
`,
  },
  {
    number: 5,
    name: 'unconsumed_messages',
    isOnline: false,
    sql: `-- The oldest message that was not received yet is found without passing all those that were.
CREATE INDEX IF NOT EXISTS idx_notifications_unconsumed
  ON notifications (destination_uuid, topic, created_at_epoch_ms, message_uuid)
  WHERE consumed = FALSE;
`,
  },
  {
    number: 6,
    name: 'enqueue_wakes_dispatchers',
    isOnline: false,
    sql: `-- Empty on purpose: SQLite has no stored functions.
`,
  },
  {
    number: 7,
    name: 'schedule_settings',
    isOnline: false,
    sql: `-- What only Everstep knows of a schedule, and a counter by which processes see that schedules have changed.
CREATE TABLE IF NOT EXISTS schedule_settings (
  schedule_id TEXT NOT NULL PRIMARY KEY,
  overlap TEXT NOT NULL,
  jitter_ms BIGINT NOT NULL
);

CREATE TABLE IF NOT EXISTS change_counters (
  topic TEXT NOT NULL PRIMARY KEY,
  changes BIGINT NOT NULL
);
`,
  },
  {
    number: 8,
    name: 'listing_indexes',
    isOnline: false,
    sql: `-- For lists of workflows. Their conditions are written so that no other statement sees its own in them: on a table without
-- statistics, a claim would otherwise be read by them.
--
-- The newest workflows of a queue, however few and old they are.
CREATE INDEX IF NOT EXISTS idx_workflow_status_listing_queue
  ON workflow_status (queue_name, created_at)
  WHERE CASE WHEN queue_name IS NULL THEN FALSE ELSE TRUE END;
-- The newest workflows that wait. Those of other states have indexes, or are most of the table.
CREATE INDEX IF NOT EXISTS idx_workflow_status_listing_waiting
  ON workflow_status (status, created_at)
  WHERE CASE WHEN status IN ('ENQUEUED', 'DELAYED') THEN TRUE ELSE FALSE END;
`,
  },
  {
    number: 9,
    name: 'fenced_sessions',
    isOnline: false,
    sql: `-- Empty on purpose: on SQLite no commit is on its way when its answer is lost.
`,
  },
  {
    number: 10,
    name: 'functions_agree',
    isOnline: false,
    sql: `-- Empty on purpose: SQLite has no stored functions.
`,
  },
  {
    number: 11,
    name: 'system_identity',
    isOnline: false,
    sql: `-- Tells this system database from others whose engines use the same application database. It has one row.
CREATE TABLE IF NOT EXISTS system_identity (
  key TEXT NOT NULL PRIMARY KEY,
  id TEXT NOT NULL
);
INSERT INTO system_identity (key, id)
VALUES ('system', lower(hex(randomblob(16))))
ON CONFLICT DO NOTHING;
`,
  },
  {
    number: 12,
    name: 'latest_version',
    isOnline: false,
    sql: `-- Each claim looks for the latest version.
CREATE INDEX IF NOT EXISTS idx_application_versions_latest
  ON application_versions (version_timestamp, version_id);
`,
  },
  {
    number: 13,
    name: 'owner_index',
    isOnline: false,
    sql: `-- The running workflows of an engine are found by its owner tokens, and the engines that own any by walking the index.
-- Tokens of other libraries have no dot.
CREATE INDEX IF NOT EXISTS idx_workflow_status_owner
  ON workflow_status (owner_xid)
  WHERE status = 'PENDING' AND owner_xid LIKE '%.%';
`,
  },
  {
    number: 14,
    name: 'notify_of_other_programs',
    isOnline: false,
    sql: `-- Engines notice the commits of other processes by themselves. Schedules are reread only if this counter has changed, which
-- programs other than Everstep do not know.
CREATE TRIGGER IF NOT EXISTS everstep_schedule_inserted AFTER INSERT ON workflow_schedules
BEGIN
  INSERT INTO change_counters (topic, changes) VALUES ('schedules', 1)
  ON CONFLICT (topic) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER IF NOT EXISTS everstep_schedule_deleted AFTER DELETE ON workflow_schedules
BEGIN
  INSERT INTO change_counters (topic, changes) VALUES ('schedules', 1)
  ON CONFLICT (topic) DO UPDATE SET changes = changes + 1;
END;
CREATE TRIGGER IF NOT EXISTS everstep_schedule_updated AFTER UPDATE OF
  schedule_id, schedule_name, workflow_name, workflow_class_name, schedule, status, context, automatic_backfill,
  cron_timezone, queue_name, application_name
ON workflow_schedules
BEGIN
  INSERT INTO change_counters (topic, changes) VALUES ('schedules', 1)
  ON CONFLICT (topic) DO UPDATE SET changes = changes + 1;
END;
`,
  },
  {
    number: 15,
    name: 'enqueue_for_all_readers',
    isOnline: false,
    sql: `-- Empty on purpose: SQLite has no stored functions.
`,
  },
  {
    number: 16,
    name: 'journal',
    isOnline: false,
    sql: `-- The journal: what happened to workflows and is not, or no longer, in the other tables. Rows are only ever added, and go
-- with their workflow. Triggers add those about changes of state, whichever program makes them; runs add the others.
CREATE TABLE IF NOT EXISTS journal (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  workflow_id TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  at BIGINT NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
  event_type TEXT NOT NULL,
  step INTEGER,
  attempt INTEGER,
  executor TEXT,
  actor TEXT,
  details TEXT,
  -- Tells a row that is written again from a new one, and a stored event from the same one in the other tables.
  key TEXT
);

CREATE INDEX IF NOT EXISTS idx_journal_workflow ON journal (workflow_id, seq);
CREATE INDEX IF NOT EXISTS idx_journal_at ON journal (at);
CREATE UNIQUE INDEX IF NOT EXISTS uq_journal_key ON journal (workflow_id, key) WHERE key IS NOT NULL;

-- What the transaction in progress says about its changes: a source, a reason and an actor. Empty between transactions.
CREATE TABLE IF NOT EXISTS journal_notes (
  kind TEXT NOT NULL PRIMARY KEY,
  note TEXT NOT NULL
);

CREATE TRIGGER IF NOT EXISTS everstep_journal_not_deleted BEFORE DELETE ON journal
WHEN EXISTS (SELECT 1 FROM workflow_status AS w WHERE w.workflow_uuid = OLD.workflow_id)
  AND NOT EXISTS (SELECT 1 FROM journal_notes AS n WHERE n.kind = 'prune')
BEGIN
  SELECT RAISE(ABORT, 'The history of workflows is append-only.');
END;

-- A workflow may be given another ID.
CREATE TRIGGER IF NOT EXISTS everstep_journal_not_updated BEFORE UPDATE ON journal
WHEN OLD.workflow_id = NEW.workflow_id OR OLD.seq <> NEW.seq OR OLD.at <> NEW.at OR OLD.event_type <> NEW.event_type
  OR OLD.details IS NOT NEW.details OR OLD.actor IS NOT NEW.actor
BEGIN
  SELECT RAISE(ABORT, 'The history of workflows is append-only.');
END;

CREATE TRIGGER IF NOT EXISTS everstep_workflow_journaled
AFTER UPDATE OF status, delay_until_epoch_ms, priority ON workflow_status
WHEN (OLD.status IS NOT NEW.status AND (
    NEW.status IN ('CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED')
    OR (OLD.status = 'PENDING' AND NEW.status IN ('ENQUEUED', 'DELAYED'))
    OR (OLD.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING') AND NEW.status IN ('ENQUEUED', 'DELAYED', 'PENDING'))))
  OR (OLD.status IN ('ENQUEUED', 'DELAYED') AND NEW.status IN ('ENQUEUED', 'DELAYED')
    AND OLD.delay_until_epoch_ms IS NOT NEW.delay_until_epoch_ms)
  OR (OLD.priority <> NEW.priority AND NEW.status IN ('ENQUEUED', 'DELAYED', 'PENDING'))
BEGIN
  INSERT INTO journal (workflow_id, at, event_type, attempt, executor, actor, details)
  SELECT NEW.workflow_uuid, c.at, k.kind,
    IIF(OLD.status = 'PENDING', OLD.recovery_attempts, NULL), IIF(OLD.status = 'PENDING', OLD.executor_id, NULL), c.actor,
    -- A merge with nothing removes the members that are null.
    json_patch('{}', json_patch(
      CASE
        WHEN k.kind = 'WorkflowTimedOut' THEN json_object(
          'from_status', OLD.status, 'queue', OLD.queue_name, 'started_at', OLD.started_at_epoch_ms,
          'deadline', NEW.workflow_deadline_epoch_ms, 'timeout_seconds', NEW.workflow_timeout_ms / 1000.0)
        WHEN k.kind = 'WorkflowCancelRequested' THEN json_object(
          'from_status', OLD.status, 'queue', OLD.queue_name, 'started_at', OLD.started_at_epoch_ms)
        WHEN k.kind = 'WorkflowDeadLettered' THEN json_object('attempts', OLD.recovery_attempts, 'queue', OLD.queue_name)
        WHEN k.kind IN ('WorkflowResumed', 'WorkflowRewound') THEN json_object(
          'from_status', OLD.status, 'queue', NEW.queue_name, 'attempts', OLD.recovery_attempts,
          'completed_at', OLD.completed_at, 'error', OLD.error, 'start_step', c.start_step)
        WHEN k.kind = 'WorkflowTaskYielded' THEN json_object(
          'until', NEW.delay_until_epoch_ms, 'started_at', OLD.started_at_epoch_ms)
        WHEN k.kind = 'AttemptLost' THEN json_object(
          'started_at', OLD.started_at_epoch_ms, 'version', OLD.application_version)
        WHEN k.kind = 'DelayChanged' THEN json_object('from', OLD.delay_until_epoch_ms, 'to', NEW.delay_until_epoch_ms)
        ELSE json_object('from', OLD.priority, 'to', NEW.priority)
      END,
      json_object('reason', c.reason, 'source', CASE
        WHEN c.source IS NOT NULL THEN c.source
        WHEN k.kind = 'WorkflowTimedOut' THEN 'deadline'
        WHEN k.kind = 'WorkflowCancelRequested' THEN 'api'
        WHEN k.kind = 'WorkflowResumed' THEN 'resume'
        WHEN k.kind = 'WorkflowRewound' THEN 'rewind'
        WHEN k.kind = 'AttemptLost' THEN 'recovery' END)))
  FROM (
    SELECT n.note ->> 'source' AS source, n.note ->> 'reason' AS reason, n.note ->> 'actor' AS actor,
      n.note ->> 'startStep' AS start_step,
      IIF(NEW.updated_at <> OLD.updated_at, NEW.updated_at, CAST(unixepoch('subsec') * 1000 AS INTEGER)) AS at
    FROM (SELECT 1) LEFT JOIN journal_notes AS n ON n.kind = 'change') AS c
  CROSS JOIN (
    SELECT CASE
      WHEN NEW.status = 'CANCELLED' AND OLD.status IS NOT 'CANCELLED' THEN IIF(
        COALESCE(
          (SELECT n.note ->> 'source' FROM journal_notes AS n WHERE n.kind = 'change'),
          IIF(NEW.workflow_deadline_epoch_ms <= NEW.updated_at, 'deadline', 'api')) = 'deadline',
        'WorkflowTimedOut', 'WorkflowCancelRequested')
      WHEN NEW.status = 'MAX_RECOVERY_ATTEMPTS_EXCEEDED' AND OLD.status IS NOT NEW.status THEN 'WorkflowDeadLettered'
      WHEN EXISTS (SELECT 1 FROM journal_notes AS n WHERE n.kind = 'change' AND n.note ->> 'source' = 'rewind')
        THEN 'WorkflowRewound'
      WHEN EXISTS (SELECT 1 FROM journal_notes AS n WHERE n.kind = 'change' AND n.note ->> 'source' = 'resume')
        THEN 'WorkflowResumed'
      WHEN OLD.status IN ('SUCCESS', 'ERROR') THEN 'WorkflowRewound'
      WHEN OLD.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING') THEN 'WorkflowResumed'
      WHEN OLD.status = 'PENDING' AND NEW.status = 'DELAYED' THEN 'WorkflowTaskYielded'
      WHEN OLD.status = 'PENDING' AND NEW.status = 'ENQUEUED' THEN 'AttemptLost'
      WHEN OLD.delay_until_epoch_ms IS NOT NEW.delay_until_epoch_ms THEN 'DelayChanged'
      ELSE 'PriorityChanged' END AS kind) AS k;
END;

CREATE TRIGGER IF NOT EXISTS everstep_fork_journaled AFTER INSERT ON workflow_status
WHEN NEW.forked_from IS NOT NULL
BEGIN
  INSERT INTO journal (workflow_id, at, event_type, actor, details)
  SELECT w.workflow_uuid, NEW.created_at, 'WorkflowForked', n.note ->> 'actor', json_patch('{}', json_object(
    'new_id', NEW.workflow_uuid, 'version', NEW.application_version, 'reason', n.note ->> 'reason'))
  FROM workflow_status AS w
  LEFT JOIN journal_notes AS n ON n.kind = 'change'
  WHERE w.workflow_uuid = NEW.forked_from;
END;
`,
  },
  {
    number: 17,
    name: 'history_views',
    isOnline: false,
    sql: `-- The history of workflows: the rows of the journal, and the events that follow from the other tables.
CREATE TABLE IF NOT EXISTS journal_timers (
  timer_id TEXT NOT NULL PRIMARY KEY,
  workflow_id TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  fire_at BIGINT NOT NULL,
  fired BOOLEAN NOT NULL DEFAULT FALSE,
  created_at BIGINT NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER))
);
CREATE INDEX IF NOT EXISTS idx_journal_timers_pending ON journal_timers (fire_at) WHERE NOT fired;
CREATE INDEX IF NOT EXISTS idx_journal_timers_workflow ON journal_timers (workflow_id);

CREATE VIEW IF NOT EXISTS history AS
SELECT j.workflow_id, CASE WHEN j.key = 'started' THEN 0 ELSE 1 END AS phase, j.at, j.step,
  CASE WHEN j.step IS NOT NULL AND j.event_type IN ('ActivityScheduled', 'TimerScheduled') THEN 0 ELSE 1 END AS part,
  j.seq, j.event_type, j.attempt, j.executor, j.actor, j.details,
  CASE
    WHEN j.key = 'started' THEN 'input'
    WHEN w.status = 'SUCCESS' OR (o.function_id IS NOT NULL AND o.error IS NULL) THEN 'result'
    WHEN w.status = 'ERROR' OR o.error IS NOT NULL THEN 'error'
  END AS payload_name,
  CASE
    WHEN j.key = 'started' THEN w.inputs
    WHEN w.workflow_uuid IS NOT NULL THEN COALESCE(w.output, w.error)
    ELSE COALESCE(o.output, o.error)
  END AS payload,
  COALESCE(w.serialization, o.serialization) AS serialization, j.key
FROM journal AS j
LEFT JOIN operation_outputs AS o
  ON o.workflow_uuid = j.workflow_id AND o.function_id = j.step AND j.event_type IN ('ActivityCompleted', 'ActivityFailed')
  AND j.key = 'step:' || o.function_id || ':done:' || COALESCE(o.completed_at_epoch_ms, 0)
LEFT JOIN workflow_status AS w
  ON w.workflow_uuid = j.workflow_id AND (j.key = 'started' OR j.key = 'outcome:' || w.owner_xid)
UNION ALL
SELECT w.workflow_uuid, 0, w.created_at, NULL, 0, NULL, 'WorkflowStarted', NULL, NULL, NULL,
  json_patch('{}', json_object(
    'workflow_name', w.name, 'class_name', NULLIF(w.class_name, ''), 'config_name', NULLIF(w.config_name, ''),
    'queue', w.queue_name, 'priority', w.priority, 'partition_key', w.queue_partition_key,
    'timeout_ms', w.workflow_timeout_ms, 'parent_id', w.parent_workflow_id, 'forked_from', w.forked_from,
    'schedule', w.schedule_name, 'version', w.application_version)),
  'input', COALESCE(w.inputs, i.inputs), w.serialization, 'started'
FROM workflow_status AS w
LEFT JOIN workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
WHERE NOT EXISTS (SELECT 1 FROM journal AS s WHERE s.workflow_id = w.workflow_uuid AND s.key = 'started')
UNION ALL
SELECT w.workflow_uuid, 1, w.started_at_epoch_ms, NULL, 0, NULL, 'AttemptStarted', w.recovery_attempts, w.executor_id, NULL,
  json_patch('{}', json_object('version', w.application_version, 'queue', w.queue_name)), NULL, NULL, NULL,
  'attempt:' || w.owner_xid
FROM workflow_status AS w
WHERE w.started_at_epoch_ms IS NOT NULL AND w.status NOT IN ('ENQUEUED', 'DELAYED') AND NOT EXISTS (
  SELECT 1 FROM journal AS s WHERE s.workflow_id = w.workflow_uuid AND s.key = 'attempt:' || w.owner_xid)
UNION ALL
SELECT o.workflow_uuid, 1,
  CASE
    WHEN p.part = 0 THEN COALESCE(o.started_at_epoch_ms, o.completed_at_epoch_ms, o.retention_timestamp)
    WHEN o.function_name = 'DBOS.sleep' THEN COALESCE(
      CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER), o.completed_at_epoch_ms)
    ELSE COALESCE(o.completed_at_epoch_ms, o.retention_timestamp)
  END,
  o.function_id, p.part, NULL,
  CASE
    WHEN o.function_name = 'DBOS.sleep' THEN IIF(p.part = 0, 'TimerScheduled', 'TimerFired')
    WHEN p.part = 0 THEN 'ActivityScheduled'
    WHEN o.function_name = 'DBOS.getResult' THEN 'ChildWorkflowCompleted'
    WHEN o.child_workflow_id IS NOT NULL AND o.function_name NOT LIKE 'DBOS.%' THEN 'ChildWorkflowStarted'
    WHEN o.function_name = 'DBOS.recv' THEN IIF(
      o.output IS NULL OR o.output = 'null' OR o.output LIKE '{"json":null%', 'ReceiveTimedOut', 'MessageConsumed')
    WHEN o.function_name = 'DBOS.setEvent' THEN 'EventSet'
    WHEN o.function_name = 'DBOS.closeStream' THEN 'StreamClosed'
    WHEN o.function_name LIKE 'DBOS.patch-%' THEN 'WorkflowPatched'
    WHEN o.function_name LIKE 'DBOS.%' THEN 'OperationCompleted'
    WHEN o.error IS NOT NULL THEN 'ActivityFailed'
    ELSE 'ActivityCompleted'
  END,
  NULL, NULL, NULL,
  CASE
    WHEN o.function_name = 'DBOS.sleep' THEN json_object(
      'timer_id', o.workflow_uuid || ':' || o.function_id, IIF(p.part = 0, 'fire_at', 'fired_at'),
      strftime('%Y-%m-%dT%H:%M:%fZ',
        CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER) / 1000.0, 'unixepoch'))
    WHEN p.part = 0 THEN json_object('activity_name', o.function_name, 'input', NULL)
    WHEN o.child_workflow_id IS NOT NULL THEN json_object('child_id', o.child_workflow_id, 'name', o.function_name)
    WHEN o.function_name = 'DBOS.setEvent' THEN json_object('key', (
      SELECT h.key FROM workflow_events_history AS h
      WHERE h.workflow_uuid = o.workflow_uuid AND h.function_id = o.function_id LIMIT 1))
    WHEN o.function_name LIKE 'DBOS.patch-%' THEN json_object('patch', SUBSTR(o.function_name, 12))
    WHEN o.function_name LIKE 'DBOS.%' THEN json_object('operation', o.function_name)
    ELSE json_object('activity_name', o.function_name, 'duration_ms', o.completed_at_epoch_ms - o.started_at_epoch_ms)
  END,
  IIF(p.part = 1 AND o.function_name <> 'DBOS.sleep', IIF(o.error IS NULL, 'result', 'error'), NULL),
  IIF(p.part = 1 AND o.function_name <> 'DBOS.sleep', COALESCE(o.output, o.error), NULL),
  o.serialization,
  'step:' || o.function_id || IIF(p.part = 0, ':begun:', ':done:') || COALESCE(o.completed_at_epoch_ms, 0)
FROM operation_outputs AS o
JOIN (SELECT 0 AS part UNION ALL SELECT 1) AS p
  ON (p.part = 1 OR o.function_name = 'DBOS.sleep'
    OR (o.function_name NOT LIKE 'DBOS.%' AND o.child_workflow_id IS NULL))
  -- A sleep records when it ends: a number, or superjson that contains it. The timer of a wait is recorded before it ends,
  -- and says nothing of how the wait ended.
  AND (p.part = 0 OR o.function_name <> 'DBOS.sleep'
    OR CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER)
      <= MIN(o.completed_at_epoch_ms, CAST(unixepoch('subsec') * 1000 AS INTEGER)))
WHERE NOT EXISTS (
  SELECT 1 FROM journal AS s
  WHERE s.workflow_id = o.workflow_uuid
    AND s.key = 'step:' || o.function_id || IIF(p.part = 0, ':begun:', ':done:') || COALESCE(o.completed_at_epoch_ms, 0))
UNION ALL
SELECT n.destination_uuid, 1, n.created_at_epoch_ms, NULL, 0, NULL, 'SignalReceived', NULL, NULL, NULL,
  json_object('signal_name', NULLIF(n.topic, '__null__topic__'), 'message_id', n.message_uuid),
  'input', n.message, n.serialization, 'message:' || n.message_uuid
FROM notifications AS n
WHERE NOT EXISTS (
  SELECT 1 FROM journal AS s WHERE s.workflow_id = n.destination_uuid AND s.key = 'message:' || n.message_uuid)
UNION ALL
SELECT w.workflow_uuid, 2, COALESCE(w.completed_at, w.updated_at), NULL, 0, NULL,
  CASE w.status WHEN 'SUCCESS' THEN 'WorkflowCompleted' WHEN 'ERROR' THEN 'WorkflowFailed' ELSE 'WorkflowCanceled' END,
  NULL, NULL, NULL, json_object('duration_ms', COALESCE(w.completed_at, w.updated_at) - w.created_at),
  CASE w.status WHEN 'SUCCESS' THEN 'result' WHEN 'ERROR' THEN 'error' END,
  COALESCE(w.output, r.output, w.error, r.error), w.serialization, 'outcome:' || w.owner_xid
FROM workflow_status AS w
LEFT JOIN workflow_output AS r ON r.workflow_uuid = w.workflow_uuid
WHERE (w.status IN ('SUCCESS', 'ERROR') OR (w.status = 'CANCELLED' AND COALESCE((
  SELECT j.event_type FROM journal AS j
  WHERE j.workflow_id = w.workflow_uuid AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
  ORDER BY j.seq DESC LIMIT 1), '') <> 'WorkflowTimedOut')) AND NOT EXISTS (
  SELECT 1 FROM journal AS s WHERE s.workflow_id = w.workflow_uuid AND s.key = 'outcome:' || w.owner_xid);

-- The same in the form of sched's tables.
CREATE VIEW IF NOT EXISTS history_workflow_executions AS
SELECT w.workflow_uuid AS workflow_id, COALESCE(w.creator_xid, w.workflow_uuid) AS run_id, w.name,
  CASE
    WHEN w.status IN ('ENQUEUED', 'DELAYED', 'PENDING') THEN 'RUNNING'
    WHEN w.status = 'SUCCESS' THEN 'COMPLETED'
    WHEN w.status <> 'CANCELLED' THEN 'FAILED'
    WHEN (
      SELECT j.event_type FROM journal AS j
      WHERE j.workflow_id = w.workflow_uuid AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
      ORDER BY j.seq DESC LIMIT 1) = 'WorkflowTimedOut' THEN 'TIMED_OUT'
    ELSE 'CANCELED'
  END AS status,
  CASE
    WHEN NOT json_valid(COALESCE(w.inputs, i.inputs)) THEN json_quote(COALESCE(w.inputs, i.inputs))
    WHEN COALESCE(w.inputs, i.inputs) -> '$.__dbos_serializer' IS NOT NULL THEN COALESCE(w.inputs, i.inputs) -> '$.json'
    ELSE COALESCE(w.inputs, i.inputs)
  END AS input,
  CASE
    WHEN NOT json_valid(COALESCE(w.output, r.output)) THEN json_quote(COALESCE(w.output, r.output))
    WHEN COALESCE(w.output, r.output) -> '$.__dbos_serializer' IS NOT NULL THEN COALESCE(w.output, r.output) -> '$.json'
    ELSE COALESCE(w.output, r.output)
  END AS result,
  COALESCE(w.error, r.error) AS error,
  strftime('%Y-%m-%dT%H:%M:%fZ', w.created_at / 1000.0, 'unixepoch') AS start_time,
  strftime('%Y-%m-%dT%H:%M:%fZ', w.completed_at / 1000.0, 'unixepoch') AS end_time,
  -- Each transition moves to a later stage, or adds to the journal more than a step back takes away.
  1 + CASE w.status WHEN 'DELAYED' THEN 0 WHEN 'ENQUEUED' THEN 1 WHEN 'PENDING' THEN 2 ELSE 3 END + COALESCE((
    SELECT SUM(IIF(
      j.event_type IN ('AttemptLost', 'WorkflowResumed', 'WorkflowRewound', 'WorkflowTaskYielded', 'DelayChanged'), 4, 1))
    FROM journal AS j WHERE j.workflow_id = w.workflow_uuid), 0) AS version
FROM workflow_status AS w
LEFT JOIN workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
LEFT JOIN workflow_output AS r ON r.workflow_uuid = w.workflow_uuid;

CREATE TRIGGER IF NOT EXISTS everstep_execution_deleted INSTEAD OF DELETE ON history_workflow_executions
BEGIN
  DELETE FROM workflow_status WHERE workflow_uuid = OLD.workflow_id;
  DELETE FROM workflow_input WHERE workflow_uuid = OLD.workflow_id;
  DELETE FROM workflow_output WHERE workflow_uuid = OLD.workflow_id;
END;

CREATE VIEW IF NOT EXISTS history_workflow_events AS
SELECT h.workflow_id,
  ROW_NUMBER() OVER (
    PARTITION BY h.workflow_id ORDER BY h.phase, h.at,
      CASE WHEN h.event_type = 'AttemptStarted' THEN -1 ELSE COALESCE(h.step, 2147483647) END, h.part, h.seq) AS idx,
  h.event_type, strftime('%Y-%m-%dT%H:%M:%fZ', h.at / 1000.0, 'unixepoch') AS timestamp,
  CASE
    WHEN h.payload_name IS NULL THEN COALESCE(h.details, '{}')
    ELSE json_set(COALESCE(h.details, '{}'), '$.' || h.payload_name, json(CASE
      WHEN NOT json_valid(h.payload) THEN json_quote(h.payload)
      WHEN h.payload -> '$.__dbos_serializer' IS NOT NULL THEN h.payload -> '$.json'
      ELSE COALESCE(h.payload, 'null') END))
  END AS details
FROM history AS h;

CREATE VIEW IF NOT EXISTS history_tasks AS
SELECT COALESCE(w.owner_xid, w.creator_xid, '') || '/' || w.workflow_uuid AS task_token, w.workflow_uuid AS workflow_id,
  'WORKFLOW' AS kind, NULL AS activity_name,
  CASE
    WHEN NOT json_valid(COALESCE(w.inputs, i.inputs)) THEN json_quote(COALESCE(w.inputs, i.inputs))
    WHEN COALESCE(w.inputs, i.inputs) -> '$.__dbos_serializer' IS NOT NULL THEN COALESCE(w.inputs, i.inputs) -> '$.json'
    ELSE COALESCE(w.inputs, i.inputs)
  END AS input,
  IIF(w.status = 'PENDING', 'IN_FLIGHT', 'PENDING') AS status,
  IIF(w.status = 'PENDING', w.owner_xid, NULL) AS claim_token,
  strftime('%Y-%m-%dT%H:%M:%fZ', e.lease_until_epoch_ms / 1000.0, 'unixepoch') AS visibility_timeout,
  strftime('%Y-%m-%dT%H:%M:%fZ', w.created_at / 1000.0, 'unixepoch') AS created_at
FROM workflow_status AS w
LEFT JOIN workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
LEFT JOIN executors AS e
  ON w.status = 'PENDING' AND e.incarnation_id = SUBSTR(w.owner_xid, 1, INSTR(w.owner_xid, '.') - 1)
WHERE w.status IN ('ENQUEUED', 'DELAYED', 'PENDING');

CREATE VIEW IF NOT EXISTS history_timers AS
SELECT t.timer_id, t.workflow_id, strftime('%Y-%m-%dT%H:%M:%fZ', t.fire_at / 1000.0, 'unixepoch') AS fire_at,
  IIF(t.fired OR (t.kind <> 'own' AND t.fire_at <= unixepoch('subsec') * 1000), 1, 0) AS fired,
  strftime('%Y-%m-%dT%H:%M:%fZ', t.created_at / 1000.0, 'unixepoch') AS created_at, t.kind
FROM (
  SELECT m.timer_id, m.workflow_id, m.fire_at, m.fired, m.created_at, 'own' AS kind
  FROM journal_timers AS m
  UNION ALL
  SELECT o.workflow_uuid || ':' || o.function_id, o.workflow_uuid,
    CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER), FALSE,
    COALESCE(o.started_at_epoch_ms, o.retention_timestamp), 'sleep'
  FROM workflow_status AS w
  JOIN operation_outputs AS o ON o.workflow_uuid = w.workflow_uuid AND o.function_name = 'DBOS.sleep'
  WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED')
  UNION ALL
  SELECT w.workflow_uuid || ':delay', w.workflow_uuid, w.delay_until_epoch_ms, FALSE, w.created_at, 'delay'
  FROM workflow_status AS w
  WHERE w.status = 'DELAYED' AND w.delay_until_epoch_ms IS NOT NULL
  UNION ALL
  SELECT w.workflow_uuid || ':deadline', w.workflow_uuid, w.workflow_deadline_epoch_ms, FALSE,
    COALESCE(w.started_at_epoch_ms, w.created_at), 'deadline'
  FROM workflow_status AS w
  WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND w.workflow_deadline_epoch_ms IS NOT NULL
) AS t;
`,
  },
  {
    number: 18,
    name: 'parked_waits',
    isOnline: false,
    sql: `-- What parked workflows wait for besides a time. Triggers wake them in the commit that brings it, whatever program that is
-- of, so that no wake-up is lost.
CREATE TABLE IF NOT EXISTS parked_waits (
  wait_key TEXT NOT NULL,
  workflow_uuid TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  kind TEXT NOT NULL,
  awaited_uuid TEXT NOT NULL,
  awaited_name TEXT,
  PRIMARY KEY (wait_key, workflow_uuid)
);
CREATE INDEX IF NOT EXISTS idx_parked_waits_workflow ON parked_waits (workflow_uuid);

CREATE TRIGGER IF NOT EXISTS everstep_wake_receivers AFTER INSERT ON notifications
WHEN EXISTS (SELECT 1 FROM parked_waits WHERE wait_key = 'message:' || NEW.destination_uuid || '::' || NEW.topic)
BEGIN
  UPDATE workflow_status SET status = 'ENQUEUED'
  WHERE workflow_uuid IN (
    SELECT p.workflow_uuid FROM parked_waits AS p
    WHERE p.wait_key = 'message:' || NEW.destination_uuid || '::' || NEW.topic
  ) AND +status = 'DELAYED' AND owner_xid LIKE '%.%';
  DELETE FROM parked_waits WHERE wait_key = 'message:' || NEW.destination_uuid || '::' || NEW.topic;
END;
CREATE TRIGGER IF NOT EXISTS everstep_wake_event_readers AFTER INSERT ON workflow_events
WHEN EXISTS (SELECT 1 FROM parked_waits WHERE wait_key = 'event:' || NEW.workflow_uuid || '::' || NEW.key)
BEGIN
  UPDATE workflow_status SET status = 'ENQUEUED'
  WHERE workflow_uuid IN (
    SELECT p.workflow_uuid FROM parked_waits AS p
    WHERE p.wait_key = 'event:' || NEW.workflow_uuid || '::' || NEW.key
  ) AND +status = 'DELAYED' AND owner_xid LIKE '%.%';
  DELETE FROM parked_waits WHERE wait_key = 'event:' || NEW.workflow_uuid || '::' || NEW.key;
END;
CREATE TRIGGER IF NOT EXISTS everstep_wake_result_waiters AFTER UPDATE OF status ON workflow_status
WHEN OLD.status IN ('ENQUEUED', 'DELAYED', 'PENDING') AND NEW.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING')
  AND EXISTS (SELECT 1 FROM parked_waits WHERE wait_key = 'outcome:' || NEW.workflow_uuid)
BEGIN
  UPDATE workflow_status SET status = 'ENQUEUED'
  WHERE workflow_uuid IN (
    SELECT p.workflow_uuid FROM parked_waits AS p WHERE p.wait_key = 'outcome:' || NEW.workflow_uuid
  ) AND +status = 'DELAYED' AND owner_xid LIKE '%.%';
  DELETE FROM parked_waits WHERE wait_key = 'outcome:' || NEW.workflow_uuid;
END;
`,
  },
  {
    number: 19,
    name: 'step_attempts',
    isOnline: false,
    sql: `-- The failed attempts of steps that are retried, so that the next process continues the count and the backoff.
CREATE TABLE IF NOT EXISTS step_attempts (
  workflow_uuid TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  function_id INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  retry_at_epoch_ms BIGINT NOT NULL,
  errors TEXT NOT NULL,
  PRIMARY KEY (workflow_uuid, function_id)
);
`,
  },
  {
    number: 20,
    name: 'archived_workflows',
    isOnline: false,
    sql: `-- Where the workflows are that retention has archived and deleted: the object of the archive that holds each.
CREATE TABLE IF NOT EXISTS archived_workflows (
  workflow_uuid TEXT NOT NULL PRIMARY KEY,
  object_name TEXT NOT NULL,
  archived_at BIGINT NOT NULL
);
`,
  },
  {
    number: 21,
    name: 'claim_indexes',
    isOnline: false,
    sql: `-- Claims read the workflows that wait in a queue, or in one of its partitions, in their order: those of a version, and those
-- of none. The conditions are written so that no other statement sees its own in them.
CREATE INDEX IF NOT EXISTS idx_workflow_status_claims
  ON workflow_status
    (queue_name, COALESCE(application_version, ''), priority, created_at, creator_xid, workflow_uuid)
  WHERE CASE WHEN status = 'ENQUEUED' THEN TRUE ELSE FALSE END;
CREATE INDEX IF NOT EXISTS idx_workflow_status_partition_claims
  ON workflow_status
    (queue_name, queue_partition_key, COALESCE(application_version, ''), priority, created_at, creator_xid, workflow_uuid)
  WHERE CASE WHEN status = 'ENQUEUED' AND queue_partition_key IS NOT NULL THEN TRUE ELSE FALSE END;
`,
  },
  {
    number: 22,
    name: 'lean_checkpoint_indexes',
    isOnline: false,
    sql: `-- Checkpoints are deleted with their workflow, and never looked up by age.
DROP INDEX IF EXISTS idx_operation_outputs_retention;
`,
  },
  {
    number: 23,
    name: 'lean_journal',
    isOnline: false,
    sql: `-- The journal of a run costs one row for each of its writes: the view \`journal_events\` makes the events of it.

-- New columns, in a form that can be run again: where the journal has them already, the inner names are those of its columns.
DROP TABLE IF EXISTS journal_saved;
CREATE TABLE journal_saved AS
SELECT j.seq, j.workflow_id, j.at, j.event_type, j.step, j.attempt, j.executor, j.actor, j.details, j.key,
  (SELECT owner FROM journal AS i WHERE i.seq = j.seq) AS owner, (SELECT name FROM journal AS i WHERE i.seq = j.seq) AS name,
  (SELECT started_at FROM journal AS i WHERE i.seq = j.seq) AS started_at,
  (SELECT completed_at FROM journal AS i WHERE i.seq = j.seq) AS completed_at
FROM (SELECT n.seq, n.workflow_id, n.at, n.event_type, n.step, n.attempt, n.executor, n.actor, n.details, n.key FROM journal AS n) AS j
CROSS JOIN (SELECT NULL AS owner, NULL AS name, NULL AS started_at, NULL AS completed_at) AS missing;
DROP TABLE journal;
CREATE TABLE journal (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  workflow_id TEXT NOT NULL
    REFERENCES workflow_status (workflow_uuid) ON UPDATE CASCADE ON DELETE CASCADE,
  at BIGINT NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
  event_type TEXT NOT NULL,
  step INTEGER,
  attempt INTEGER,
  executor TEXT,
  actor TEXT,
  details TEXT,
  -- Tells a row that is written again from a new one, and a stored event from the same one in the other tables.
  key TEXT,
  -- The owner token of the run, if the row is about how an attempt began or how a workflow ended.
  owner TEXT,
  -- Of the step.
  name TEXT,
  started_at BIGINT,
  -- Tells the checkpoint of a step from a later one under the same number.
  completed_at BIGINT
);
INSERT INTO journal
  (seq, workflow_id, at, event_type, step, attempt, executor, actor, details, key, owner, name, started_at, completed_at)
SELECT j.seq, j.workflow_id, j.at, j.event_type, j.step, j.attempt, j.executor, j.actor, j.details, j.key, j.owner, j.name,
  j.started_at, j.completed_at
FROM journal_saved AS j;
DROP TABLE journal_saved;
CREATE INDEX IF NOT EXISTS idx_journal_workflow ON journal (workflow_id, step);
CREATE INDEX IF NOT EXISTS idx_journal_at ON journal (at);
CREATE UNIQUE INDEX IF NOT EXISTS uq_journal_key ON journal (workflow_id, key) WHERE key IS NOT NULL;

CREATE TRIGGER IF NOT EXISTS everstep_journal_not_deleted BEFORE DELETE ON journal
WHEN EXISTS (SELECT 1 FROM workflow_status AS w WHERE w.workflow_uuid = OLD.workflow_id)
  AND NOT EXISTS (SELECT 1 FROM journal_notes AS n WHERE n.kind = 'prune')
BEGIN
  SELECT RAISE(ABORT, 'The history of workflows is append-only.');
END;

-- A workflow may be given another ID.
CREATE TRIGGER IF NOT EXISTS everstep_journal_not_updated BEFORE UPDATE ON journal
WHEN OLD.workflow_id = NEW.workflow_id OR OLD.seq <> NEW.seq OR OLD.at <> NEW.at OR OLD.event_type <> NEW.event_type
  OR OLD.details IS NOT NEW.details OR OLD.actor IS NOT NEW.actor
BEGIN
  SELECT RAISE(ABORT, 'The history of workflows is append-only.');
END;

-- What each row says: that a workflow was started (0), that an attempt began (1), that a step did (2), and how it ended, or
-- another event (3).
CREATE VIEW IF NOT EXISTS journal_events AS
SELECT j.workflow_id, j.seq, p.part, j.at,
  CASE p.part WHEN 1 THEN 'AttemptStarted' WHEN 2 THEN 'ActivityScheduled' ELSE j.event_type END AS event_type,
  IIF(p.part <> 1, j.step, NULL) AS step,
  IIF(p.part = 1 OR j.owner IS NULL, j.attempt, NULL) AS attempt,
  j.executor, j.actor,
  CASE
    -- A merge with nothing removes the members that are null.
    WHEN p.part = 1 THEN json_patch('{}', json_object('version', j.details ->> 'version', 'queue', j.details ->> 'queue'))
    WHEN p.part = 2 THEN json_object('activity_name', j.name, 'input', json(COALESCE(j.details -> 'input', 'null')))
    WHEN p.part = 3 AND j.event_type IN ('ActivityCompleted', 'ActivityFailed') AND j.completed_at IS NOT NULL
      THEN json_object('activity_name', j.name, 'duration_ms', j.completed_at - j.started_at)
    WHEN p.part = 3 AND j.event_type IN ('WorkflowCompleted', 'WorkflowFailed') AND j.completed_at IS NOT NULL
      THEN json_object('duration_ms', j.completed_at - j.started_at)
    ELSE j.details
  END AS details,
  j.completed_at, j.owner,
  COALESCE(j.key, CASE
    WHEN p.part = 0 THEN 'started'
    WHEN p.part = 1 THEN 'attempt:' || j.owner
    WHEN j.step IS NOT NULL
      THEN 'step:' || j.step || IIF(p.part = 2 OR j.event_type = 'TimerScheduled', ':begun:', ':done:') || j.completed_at
    ELSE 'outcome:' || j.owner
  END) AS key
FROM journal AS j
JOIN (SELECT 0 AS part UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3) AS p ON CASE p.part
  WHEN 0 THEN j.event_type = 'WorkflowStarted'
  WHEN 1 THEN j.attempt IS NOT NULL AND j.owner IS NOT NULL
  WHEN 2 THEN j.event_type IN ('ActivityCompleted', 'ActivityFailed') AND j.completed_at IS NOT NULL
  ELSE j.event_type NOT IN ('WorkflowStarted', 'PayloadKept') END;

DROP VIEW IF EXISTS history;
CREATE VIEW history AS
SELECT e.workflow_id, IIF(e.part = 0, 0, 1) AS phase, e.at, e.step,
  IIF(e.part = 2 OR (e.step IS NOT NULL AND e.event_type IN ('ActivityScheduled', 'TimerScheduled')), 0, 1) AS part,
  e.seq, e.event_type, e.attempt, e.executor, e.actor,
  IIF(k.key IS NULL, e.details, json_patch(COALESCE(e.details, '{}'), k.details)) AS details,
  CASE
    WHEN e.part = 0 THEN 'input'
    WHEN w.status = 'SUCCESS' OR (o.function_id IS NOT NULL AND o.error IS NULL) THEN 'result'
    WHEN w.status = 'ERROR' OR o.error IS NOT NULL THEN 'error'
  END AS payload_name,
  CASE
    WHEN e.part = 0 THEN w.inputs
    WHEN w.workflow_uuid IS NOT NULL THEN COALESCE(w.output, w.error)
    ELSE COALESCE(o.output, o.error)
  END AS payload,
  COALESCE(w.serialization, o.serialization) AS serialization, e.key
FROM journal_events AS e
LEFT JOIN operation_outputs AS o
  ON o.workflow_uuid = e.workflow_id AND o.function_id = e.step AND o.completed_at_epoch_ms = e.completed_at AND e.part = 3
  AND e.event_type NOT IN ('TimerScheduled', 'TimerFired')
LEFT JOIN workflow_status AS w
  ON w.workflow_uuid = e.workflow_id AND (e.part = 0 OR (
    e.event_type IN ('WorkflowCompleted', 'WorkflowFailed') AND e.owner = w.owner_xid AND w.status IN ('SUCCESS', 'ERROR')))
-- What a rewind has deleted.
LEFT JOIN journal AS k
  ON k.workflow_id = e.workflow_id AND k.key = 'payload:' || e.seq AND e.part = 3 AND e.completed_at IS NOT NULL
UNION ALL
SELECT w.workflow_uuid, 0, w.created_at, NULL, 0, NULL, 'WorkflowStarted', NULL, NULL, NULL,
  json_patch('{}', json_object(
    'workflow_name', w.name, 'class_name', NULLIF(w.class_name, ''), 'config_name', NULLIF(w.config_name, ''),
    'queue', w.queue_name, 'priority', w.priority, 'partition_key', w.queue_partition_key,
    'timeout_ms', w.workflow_timeout_ms, 'parent_id', w.parent_workflow_id, 'forked_from', w.forked_from,
    'schedule', w.schedule_name, 'version', w.application_version)),
  'input', COALESCE(w.inputs, i.inputs), w.serialization, 'started'
FROM workflow_status AS w
LEFT JOIN workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
WHERE NOT EXISTS (SELECT 1 FROM journal AS s WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL AND s.event_type = 'WorkflowStarted')
UNION ALL
SELECT w.workflow_uuid, 1, w.started_at_epoch_ms, NULL, 0, NULL, 'AttemptStarted', w.recovery_attempts, w.executor_id, NULL,
  json_patch('{}', json_object('version', w.application_version, 'queue', w.queue_name)), NULL, NULL, NULL,
  'attempt:' || w.owner_xid
FROM workflow_status AS w
WHERE w.started_at_epoch_ms IS NOT NULL AND w.status NOT IN ('ENQUEUED', 'DELAYED') AND NOT EXISTS (
  SELECT 1 FROM journal AS s
  WHERE s.workflow_id = w.workflow_uuid AND s.attempt IS NOT NULL
    AND (s.owner = w.owner_xid OR s.key = 'attempt:' || w.owner_xid))
UNION ALL
SELECT o.workflow_uuid, 1,
  CASE
    WHEN p.part = 0 THEN COALESCE(o.started_at_epoch_ms, o.completed_at_epoch_ms, o.retention_timestamp)
    WHEN o.function_name = 'DBOS.sleep' THEN COALESCE(
      CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER), o.completed_at_epoch_ms)
    ELSE COALESCE(o.completed_at_epoch_ms, o.retention_timestamp)
  END,
  o.function_id, p.part, NULL,
  CASE
    WHEN o.function_name = 'DBOS.sleep' THEN IIF(p.part = 0, 'TimerScheduled', 'TimerFired')
    WHEN p.part = 0 THEN 'ActivityScheduled'
    WHEN o.function_name = 'DBOS.getResult' THEN 'ChildWorkflowCompleted'
    WHEN o.child_workflow_id IS NOT NULL AND o.function_name NOT LIKE 'DBOS.%' THEN 'ChildWorkflowStarted'
    WHEN o.function_name = 'DBOS.recv' THEN IIF(
      o.output IS NULL OR o.output = 'null' OR o.output LIKE '{"json":null%', 'ReceiveTimedOut', 'MessageConsumed')
    WHEN o.function_name = 'DBOS.setEvent' THEN 'EventSet'
    WHEN o.function_name = 'DBOS.closeStream' THEN 'StreamClosed'
    WHEN o.function_name LIKE 'DBOS.patch-%' THEN 'WorkflowPatched'
    WHEN o.function_name LIKE 'DBOS.%' THEN 'OperationCompleted'
    WHEN o.error IS NOT NULL THEN 'ActivityFailed'
    ELSE 'ActivityCompleted'
  END,
  NULL, NULL, NULL,
  CASE
    WHEN o.function_name = 'DBOS.sleep' THEN json_object(
      'timer_id', o.workflow_uuid || ':' || o.function_id, IIF(p.part = 0, 'fire_at', 'fired_at'),
      strftime('%Y-%m-%dT%H:%M:%fZ',
        CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER) / 1000.0, 'unixepoch'))
    WHEN p.part = 0 THEN json_object('activity_name', o.function_name, 'input', NULL)
    WHEN o.child_workflow_id IS NOT NULL THEN json_object('child_id', o.child_workflow_id, 'name', o.function_name)
    WHEN o.function_name = 'DBOS.setEvent' THEN json_object('key', (
      SELECT h.key FROM workflow_events_history AS h
      WHERE h.workflow_uuid = o.workflow_uuid AND h.function_id = o.function_id LIMIT 1))
    WHEN o.function_name LIKE 'DBOS.patch-%' THEN json_object('patch', SUBSTR(o.function_name, 12))
    WHEN o.function_name LIKE 'DBOS.%' THEN json_object('operation', o.function_name)
    ELSE json_object('activity_name', o.function_name, 'duration_ms', o.completed_at_epoch_ms - o.started_at_epoch_ms)
  END,
  IIF(p.part = 1 AND o.function_name <> 'DBOS.sleep', IIF(o.error IS NULL, 'result', 'error'), NULL),
  IIF(p.part = 1 AND o.function_name <> 'DBOS.sleep', COALESCE(o.output, o.error), NULL),
  o.serialization,
  'step:' || o.function_id || IIF(p.part = 0, ':begun:', ':done:') || COALESCE(o.completed_at_epoch_ms, 0)
FROM operation_outputs AS o
JOIN (SELECT 0 AS part UNION ALL SELECT 1) AS p
  ON (p.part = 1 OR o.function_name = 'DBOS.sleep'
    OR (o.function_name NOT LIKE 'DBOS.%' AND o.child_workflow_id IS NULL))
  -- A sleep records when it ends: a number, or superjson that contains it. The timer of a wait is recorded before it ends,
  -- and says nothing of how the wait ended.
  AND (p.part = 0 OR o.function_name <> 'DBOS.sleep'
    OR CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER)
      <= MIN(o.completed_at_epoch_ms, CAST(unixepoch('subsec') * 1000 AS INTEGER)))
WHERE NOT EXISTS (
  SELECT 1 FROM journal AS s
  WHERE s.workflow_id = o.workflow_uuid AND s.step = o.function_id AND s.completed_at = COALESCE(o.completed_at_epoch_ms, 0)
    AND (o.function_name <> 'DBOS.sleep' OR (s.event_type = 'TimerFired') = (p.part = 1)))
UNION ALL
SELECT n.destination_uuid, 1, n.created_at_epoch_ms, NULL, 0, NULL, 'SignalReceived', NULL, NULL, NULL,
  json_object('signal_name', NULLIF(n.topic, '__null__topic__'), 'message_id', n.message_uuid),
  'input', n.message, n.serialization, 'message:' || n.message_uuid
FROM notifications AS n
WHERE NOT EXISTS (
  SELECT 1 FROM journal AS s WHERE s.workflow_id = n.destination_uuid AND s.key = 'message:' || n.message_uuid)
UNION ALL
SELECT w.workflow_uuid, 2, COALESCE(w.completed_at, w.updated_at), NULL, 0, NULL,
  CASE w.status WHEN 'SUCCESS' THEN 'WorkflowCompleted' WHEN 'ERROR' THEN 'WorkflowFailed' ELSE 'WorkflowCanceled' END,
  NULL, NULL, NULL, json_object('duration_ms', COALESCE(w.completed_at, w.updated_at) - w.created_at),
  CASE w.status WHEN 'SUCCESS' THEN 'result' WHEN 'ERROR' THEN 'error' END,
  COALESCE(w.output, r.output, w.error, r.error), w.serialization, 'outcome:' || w.owner_xid
FROM workflow_status AS w
LEFT JOIN workflow_output AS r ON r.workflow_uuid = w.workflow_uuid
WHERE (w.status IN ('SUCCESS', 'ERROR') OR (w.status = 'CANCELLED' AND COALESCE((
  SELECT j.event_type FROM journal AS j
  WHERE j.workflow_id = w.workflow_uuid AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
  ORDER BY j.seq DESC LIMIT 1), '') <> 'WorkflowTimedOut')) AND NOT EXISTS (
  SELECT 1 FROM journal AS s
  WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL
    AND ((s.owner = w.owner_xid AND s.event_type IN ('WorkflowCompleted', 'WorkflowFailed')) OR s.key = 'outcome:' || w.owner_xid));
`,
  },
  {
    number: 24,
    name: 'schedule_timers',
    isOnline: false,
    sql: `-- When each schedule fires next, which only code can tell. Engines write it for the view of timers.
CREATE TABLE IF NOT EXISTS schedule_timers (
  schedule_id TEXT NOT NULL PRIMARY KEY
    REFERENCES workflow_schedules (schedule_id) ON UPDATE CASCADE ON DELETE CASCADE,
  -- The time of the occurrence, which is part of its workflow's ID, and that time with the jitter.
  due_at BIGINT NOT NULL,
  fire_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);

DROP VIEW IF EXISTS history_timers;
CREATE VIEW history_timers AS
SELECT t.timer_id, t.workflow_id, strftime('%Y-%m-%dT%H:%M:%fZ', t.fire_at / 1000.0, 'unixepoch') AS fire_at,
  IIF(t.fired OR (t.kind NOT IN ('own', 'schedule') AND t.fire_at <= unixepoch('subsec') * 1000), 1, 0) AS fired,
  strftime('%Y-%m-%dT%H:%M:%fZ', t.created_at / 1000.0, 'unixepoch') AS created_at, t.kind
FROM (
  SELECT m.timer_id, m.workflow_id, m.fire_at, m.fired, m.created_at, 'own' AS kind
  FROM journal_timers AS m
  UNION ALL
  SELECT o.workflow_uuid || ':' || o.function_id, o.workflow_uuid,
    CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER), FALSE,
    COALESCE(o.started_at_epoch_ms, o.retention_timestamp), 'sleep'
  FROM workflow_status AS w
  JOIN operation_outputs AS o ON o.workflow_uuid = w.workflow_uuid AND o.function_name = 'DBOS.sleep'
  WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED')
  UNION ALL
  SELECT w.workflow_uuid || ':delay', w.workflow_uuid, w.delay_until_epoch_ms, FALSE, w.created_at, 'delay'
  FROM workflow_status AS w
  WHERE w.status = 'DELAYED' AND w.delay_until_epoch_ms IS NOT NULL
  UNION ALL
  SELECT w.workflow_uuid || ':deadline', w.workflow_uuid, w.workflow_deadline_epoch_ms, FALSE,
    COALESCE(w.started_at_epoch_ms, w.created_at), 'deadline'
  FROM workflow_status AS w
  WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND w.workflow_deadline_epoch_ms IS NOT NULL
  UNION ALL
  -- The backoff of a step that will be repeated.
  SELECT a.workflow_uuid || ':' || a.function_id || ':retry', a.workflow_uuid, a.retry_at_epoch_ms, FALSE,
    COALESCE(w.started_at_epoch_ms, w.created_at), 'retry'
  FROM step_attempts AS a
  JOIN workflow_status AS w ON w.workflow_uuid = a.workflow_uuid
  LEFT JOIN operation_outputs AS o ON o.workflow_uuid = a.workflow_uuid AND o.function_id = a.function_id
  WHERE w.status IN ('ENQUEUED', 'PENDING', 'DELAYED') AND o.workflow_uuid IS NULL
  UNION ALL
  -- Of the workflow that it will start.
  SELECT 'schedule:' || s.schedule_name,
    'sched-' || s.schedule_name || '-' || strftime('%Y-%m-%dT%H:%M:%fZ', n.due_at / 1000.0, 'unixepoch'),
    n.fire_at, FALSE, n.created_at, 'schedule'
  FROM schedule_timers AS n
  JOIN workflow_schedules AS s ON s.schedule_id = n.schedule_id
  WHERE s.status = 'ACTIVE'
) AS t;
`,
  },
  {
    number: 25,
    name: 'ends_of_waits',
    isOnline: false,
    sql: `-- The ends of parked waits, and queues whose parked workflows give up their slots.

-- Queues whose workflows leave their slots while they are parked.
CREATE TABLE IF NOT EXISTS slot_releasing_queues (
  name TEXT NOT NULL PRIMARY KEY
);

-- The waits of a workflow end when it is no longer parked, whatever program changes it.
CREATE TRIGGER IF NOT EXISTS everstep_end_waits AFTER UPDATE OF status ON workflow_status
WHEN OLD.status = 'DELAYED' AND NEW.status <> 'DELAYED' AND OLD.owner_xid LIKE '%.%'
BEGIN
  DELETE FROM parked_waits WHERE workflow_uuid = NEW.workflow_uuid;
END;
`,
  },
  {
    number: 26,
    name: 'history_lookups',
    isOnline: false,
    sql: `-- Reads a history in which every event is stored with half as many lookups.
DROP VIEW IF EXISTS history;
CREATE VIEW history AS
SELECT e.workflow_id, IIF(e.part = 0, 0, 1) AS phase, e.at, e.step,
  IIF(e.part = 2 OR (e.step IS NOT NULL AND e.event_type IN ('ActivityScheduled', 'TimerScheduled')), 0, 1) AS part,
  e.seq, e.event_type, e.attempt, e.executor, e.actor,
  IIF(k.key IS NULL, e.details, json_patch(COALESCE(e.details, '{}'), k.details)) AS details,
  CASE
    WHEN e.part = 0 THEN 'input'
    WHEN w.status = 'SUCCESS' OR (o.function_id IS NOT NULL AND o.error IS NULL) THEN 'result'
    WHEN w.status = 'ERROR' OR o.error IS NOT NULL THEN 'error'
  END AS payload_name,
  CASE
    WHEN e.part = 0 THEN w.inputs
    WHEN w.workflow_uuid IS NOT NULL THEN COALESCE(w.output, w.error)
    ELSE COALESCE(o.output, o.error)
  END AS payload,
  COALESCE(w.serialization, o.serialization) AS serialization, e.key
FROM journal_events AS e
LEFT JOIN operation_outputs AS o
  ON o.workflow_uuid = e.workflow_id AND o.function_id = e.step AND o.completed_at_epoch_ms = e.completed_at AND e.part = 3
  AND e.event_type NOT IN ('TimerScheduled', 'TimerFired')
LEFT JOIN workflow_status AS w
  ON w.workflow_uuid = e.workflow_id AND (e.part = 0 OR (
    e.event_type IN ('WorkflowCompleted', 'WorkflowFailed') AND e.owner = w.owner_xid AND w.status IN ('SUCCESS', 'ERROR')))
-- What a rewind has deleted.
LEFT JOIN journal AS k
  ON k.workflow_id = e.workflow_id AND k.key = 'payload:' || e.seq AND e.part = 3 AND e.completed_at IS NOT NULL
UNION ALL
SELECT w.workflow_uuid, 0, w.created_at, NULL, 0, NULL, 'WorkflowStarted', NULL, NULL, NULL,
  json_patch('{}', json_object(
    'workflow_name', w.name, 'class_name', NULLIF(w.class_name, ''), 'config_name', NULLIF(w.config_name, ''),
    'queue', w.queue_name, 'priority', w.priority, 'partition_key', w.queue_partition_key,
    'timeout_ms', w.workflow_timeout_ms, 'parent_id', w.parent_workflow_id, 'forked_from', w.forked_from,
    'schedule', w.schedule_name, 'version', w.application_version)),
  'input', COALESCE(w.inputs, i.inputs), w.serialization, 'started'
FROM workflow_status AS w
LEFT JOIN workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
WHERE NOT EXISTS (SELECT 1 FROM journal AS s WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL AND s.event_type = 'WorkflowStarted')
UNION ALL
SELECT w.workflow_uuid, 1, w.started_at_epoch_ms, NULL, 0, NULL, 'AttemptStarted', w.recovery_attempts, w.executor_id, NULL,
  json_patch('{}', json_object('version', w.application_version, 'queue', w.queue_name)), NULL, NULL, NULL,
  'attempt:' || w.owner_xid
FROM workflow_status AS w
WHERE w.started_at_epoch_ms IS NOT NULL AND w.status NOT IN ('ENQUEUED', 'DELAYED') AND NOT EXISTS (
  SELECT 1 FROM journal AS s
  WHERE s.workflow_id = w.workflow_uuid AND s.attempt IS NOT NULL
    AND (s.owner = w.owner_xid OR s.key = 'attempt:' || w.owner_xid))
UNION ALL
SELECT o.workflow_uuid, 1,
  CASE
    WHEN p.part = 0 THEN COALESCE(o.started_at_epoch_ms, o.completed_at_epoch_ms, o.retention_timestamp)
    WHEN o.function_name = 'DBOS.sleep' THEN COALESCE(
      CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER), o.completed_at_epoch_ms)
    ELSE COALESCE(o.completed_at_epoch_ms, o.retention_timestamp)
  END,
  o.function_id, p.part, NULL,
  CASE
    WHEN o.function_name = 'DBOS.sleep' THEN IIF(p.part = 0, 'TimerScheduled', 'TimerFired')
    WHEN p.part = 0 THEN 'ActivityScheduled'
    WHEN o.function_name = 'DBOS.getResult' THEN 'ChildWorkflowCompleted'
    WHEN o.child_workflow_id IS NOT NULL AND o.function_name NOT LIKE 'DBOS.%' THEN 'ChildWorkflowStarted'
    WHEN o.function_name = 'DBOS.recv' THEN IIF(
      o.output IS NULL OR o.output = 'null' OR o.output LIKE '{"json":null%', 'ReceiveTimedOut', 'MessageConsumed')
    WHEN o.function_name = 'DBOS.setEvent' THEN 'EventSet'
    WHEN o.function_name = 'DBOS.closeStream' THEN 'StreamClosed'
    WHEN o.function_name LIKE 'DBOS.patch-%' THEN 'WorkflowPatched'
    WHEN o.function_name LIKE 'DBOS.%' THEN 'OperationCompleted'
    WHEN o.error IS NOT NULL THEN 'ActivityFailed'
    ELSE 'ActivityCompleted'
  END,
  NULL, NULL, NULL,
  CASE
    WHEN o.function_name = 'DBOS.sleep' THEN json_object(
      'timer_id', o.workflow_uuid || ':' || o.function_id, IIF(p.part = 0, 'fire_at', 'fired_at'),
      strftime('%Y-%m-%dT%H:%M:%fZ',
        CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER) / 1000.0, 'unixepoch'))
    WHEN p.part = 0 THEN json_object('activity_name', o.function_name, 'input', NULL)
    WHEN o.child_workflow_id IS NOT NULL THEN json_object('child_id', o.child_workflow_id, 'name', o.function_name)
    WHEN o.function_name = 'DBOS.setEvent' THEN json_object('key', (
      SELECT h.key FROM workflow_events_history AS h
      WHERE h.workflow_uuid = o.workflow_uuid AND h.function_id = o.function_id LIMIT 1))
    WHEN o.function_name LIKE 'DBOS.patch-%' THEN json_object('patch', SUBSTR(o.function_name, 12))
    WHEN o.function_name LIKE 'DBOS.%' THEN json_object('operation', o.function_name)
    ELSE json_object('activity_name', o.function_name, 'duration_ms', o.completed_at_epoch_ms - o.started_at_epoch_ms)
  END,
  IIF(p.part = 1 AND o.function_name <> 'DBOS.sleep', IIF(o.error IS NULL, 'result', 'error'), NULL),
  IIF(p.part = 1 AND o.function_name <> 'DBOS.sleep', COALESCE(o.output, o.error), NULL),
  o.serialization,
  'step:' || o.function_id || IIF(p.part = 0, ':begun:', ':done:') || COALESCE(o.completed_at_epoch_ms, 0)
FROM operation_outputs AS o
JOIN (SELECT 0 AS part UNION ALL SELECT 1) AS p
  ON (p.part = 1 OR o.function_name = 'DBOS.sleep'
    OR (o.function_name NOT LIKE 'DBOS.%' AND o.child_workflow_id IS NULL))
  -- A sleep records when it ends: a number, or superjson that contains it. The timer of a wait is recorded before it ends,
  -- and says nothing of how the wait ended.
  AND (p.part = 0 OR o.function_name <> 'DBOS.sleep'
    OR CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER)
      <= MIN(o.completed_at_epoch_ms, CAST(unixepoch('subsec') * 1000 AS INTEGER)))
-- Only the events of a sleep are stored one by one. Those of a step are looked for once, before they are told apart.
WHERE (o.function_name = 'DBOS.sleep' OR NOT EXISTS (
    SELECT 1 FROM journal AS s
    WHERE s.workflow_id = o.workflow_uuid AND s.step = o.function_id AND s.completed_at = COALESCE(o.completed_at_epoch_ms, 0)))
  AND (o.function_name <> 'DBOS.sleep' OR NOT EXISTS (
    SELECT 1 FROM journal AS s
    WHERE s.workflow_id = o.workflow_uuid AND s.step = o.function_id AND s.completed_at = COALESCE(o.completed_at_epoch_ms, 0)
      AND (s.event_type = 'TimerFired') = (p.part = 1)))
UNION ALL
SELECT n.destination_uuid, 1, n.created_at_epoch_ms, NULL, 0, NULL, 'SignalReceived', NULL, NULL, NULL,
  json_object('signal_name', NULLIF(n.topic, '__null__topic__'), 'message_id', n.message_uuid),
  'input', n.message, n.serialization, 'message:' || n.message_uuid
FROM notifications AS n
WHERE NOT EXISTS (
  SELECT 1 FROM journal AS s WHERE s.workflow_id = n.destination_uuid AND s.key = 'message:' || n.message_uuid)
UNION ALL
SELECT w.workflow_uuid, 2, COALESCE(w.completed_at, w.updated_at), NULL, 0, NULL,
  CASE w.status WHEN 'SUCCESS' THEN 'WorkflowCompleted' WHEN 'ERROR' THEN 'WorkflowFailed' ELSE 'WorkflowCanceled' END,
  NULL, NULL, NULL, json_object('duration_ms', COALESCE(w.completed_at, w.updated_at) - w.created_at),
  CASE w.status WHEN 'SUCCESS' THEN 'result' WHEN 'ERROR' THEN 'error' END,
  COALESCE(w.output, r.output, w.error, r.error), w.serialization, 'outcome:' || w.owner_xid
FROM workflow_status AS w
LEFT JOIN workflow_output AS r ON r.workflow_uuid = w.workflow_uuid
WHERE (w.status IN ('SUCCESS', 'ERROR') OR (w.status = 'CANCELLED' AND COALESCE((
  SELECT j.event_type FROM journal AS j
  WHERE j.workflow_id = w.workflow_uuid AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
  ORDER BY j.seq DESC LIMIT 1), '') <> 'WorkflowTimedOut')) AND NOT EXISTS (
  SELECT 1 FROM journal AS s
  WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL
    AND ((s.owner = w.owner_xid AND s.event_type IN ('WorkflowCompleted', 'WorkflowFailed')) OR s.key = 'outcome:' || w.owner_xid));
`,
  },
  {
    number: 27,
    name: 'deletions',
    isOnline: false,
    sql: `-- Who deleted a workflow, and why, if the caller has said so. The rest of its history goes with it.
CREATE TABLE IF NOT EXISTS deleted_workflows (
  workflow_uuid TEXT NOT NULL,
  deleted_at BIGINT NOT NULL,
  name TEXT,
  actor TEXT,
  reason TEXT,
  PRIMARY KEY (workflow_uuid, deleted_at)
);

DROP VIEW IF EXISTS history;
CREATE VIEW history AS
SELECT e.workflow_id, IIF(e.part = 0, 0, 1) AS phase, e.at, e.step,
  IIF(e.part = 2 OR (e.step IS NOT NULL AND e.event_type IN ('ActivityScheduled', 'TimerScheduled')), 0, 1) AS part,
  e.seq, e.event_type, e.attempt, e.executor, e.actor,
  IIF(k.key IS NULL, e.details, json_patch(COALESCE(e.details, '{}'), k.details)) AS details,
  CASE
    WHEN e.part = 0 THEN 'input'
    WHEN w.status = 'SUCCESS' OR (o.function_id IS NOT NULL AND o.error IS NULL) THEN 'result'
    WHEN w.status = 'ERROR' OR o.error IS NOT NULL THEN 'error'
  END AS payload_name,
  CASE
    WHEN e.part = 0 THEN w.inputs
    WHEN w.workflow_uuid IS NOT NULL THEN COALESCE(w.output, w.error)
    ELSE COALESCE(o.output, o.error)
  END AS payload,
  COALESCE(w.serialization, o.serialization) AS serialization, e.key
FROM journal_events AS e
LEFT JOIN operation_outputs AS o
  ON o.workflow_uuid = e.workflow_id AND o.function_id = e.step AND o.completed_at_epoch_ms = e.completed_at AND e.part = 3
  AND e.event_type NOT IN ('TimerScheduled', 'TimerFired')
LEFT JOIN workflow_status AS w
  ON w.workflow_uuid = e.workflow_id AND (e.part = 0 OR (
    e.event_type IN ('WorkflowCompleted', 'WorkflowFailed') AND e.owner = w.owner_xid AND w.status IN ('SUCCESS', 'ERROR')))
-- What a rewind has deleted.
LEFT JOIN journal AS k
  ON k.workflow_id = e.workflow_id AND k.key = 'payload:' || e.seq AND e.part = 3 AND e.completed_at IS NOT NULL
UNION ALL
SELECT w.workflow_uuid, 0, w.created_at, NULL, 0, NULL, 'WorkflowStarted', NULL, NULL, NULL,
  json_patch('{}', json_object(
    'workflow_name', w.name, 'class_name', NULLIF(w.class_name, ''), 'config_name', NULLIF(w.config_name, ''),
    'queue', w.queue_name, 'priority', w.priority, 'partition_key', w.queue_partition_key,
    'timeout_ms', w.workflow_timeout_ms, 'parent_id', w.parent_workflow_id, 'forked_from', w.forked_from,
    'schedule', w.schedule_name, 'version', w.application_version)),
  'input', COALESCE(w.inputs, i.inputs), w.serialization, 'started'
FROM workflow_status AS w
LEFT JOIN workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
WHERE NOT EXISTS (SELECT 1 FROM journal AS s WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL AND s.event_type = 'WorkflowStarted')
UNION ALL
SELECT w.workflow_uuid, 1, w.started_at_epoch_ms, NULL, 0, NULL, 'AttemptStarted', w.recovery_attempts, w.executor_id, NULL,
  json_patch('{}', json_object('version', w.application_version, 'queue', w.queue_name)), NULL, NULL, NULL,
  'attempt:' || w.owner_xid
FROM workflow_status AS w
WHERE w.started_at_epoch_ms IS NOT NULL AND w.status NOT IN ('ENQUEUED', 'DELAYED') AND NOT EXISTS (
  SELECT 1 FROM journal AS s
  WHERE s.workflow_id = w.workflow_uuid AND s.attempt IS NOT NULL
    AND (s.owner = w.owner_xid OR s.key = 'attempt:' || w.owner_xid))
UNION ALL
SELECT o.workflow_uuid, 1,
  CASE
    WHEN p.part = 0 THEN COALESCE(o.started_at_epoch_ms, o.completed_at_epoch_ms, o.retention_timestamp)
    WHEN o.function_name = 'DBOS.sleep' THEN COALESCE(
      CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER), o.completed_at_epoch_ms)
    ELSE COALESCE(o.completed_at_epoch_ms, o.retention_timestamp)
  END,
  o.function_id, p.part, NULL,
  CASE
    WHEN o.function_name = 'DBOS.sleep' THEN IIF(p.part = 0, 'TimerScheduled', 'TimerFired')
    WHEN p.part = 0 THEN 'ActivityScheduled'
    WHEN o.function_name = 'DBOS.getResult' THEN 'ChildWorkflowCompleted'
    WHEN o.child_workflow_id IS NOT NULL AND o.function_name NOT LIKE 'DBOS.%' THEN 'ChildWorkflowStarted'
    WHEN o.function_name = 'DBOS.recv' THEN IIF(
      o.output IS NULL OR o.output = 'null' OR o.output LIKE '{"json":null%', 'ReceiveTimedOut', 'MessageConsumed')
    WHEN o.function_name = 'DBOS.setEvent' THEN 'EventSet'
    WHEN o.function_name = 'DBOS.closeStream' THEN 'StreamClosed'
    WHEN o.function_name LIKE 'DBOS.patch-%' THEN 'WorkflowPatched'
    WHEN o.function_name LIKE 'DBOS.%' THEN 'OperationCompleted'
    WHEN o.error IS NOT NULL THEN 'ActivityFailed'
    ELSE 'ActivityCompleted'
  END,
  NULL, NULL, NULL,
  CASE
    WHEN o.function_name = 'DBOS.sleep' THEN json_object(
      'timer_id', o.workflow_uuid || ':' || o.function_id, IIF(p.part = 0, 'fire_at', 'fired_at'),
      strftime('%Y-%m-%dT%H:%M:%fZ',
        CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER) / 1000.0, 'unixepoch'))
    WHEN p.part = 0 THEN json_object('activity_name', o.function_name, 'input', NULL)
    WHEN o.child_workflow_id IS NOT NULL THEN json_object('child_id', o.child_workflow_id, 'name', o.function_name)
    WHEN o.function_name = 'DBOS.setEvent' THEN json_object('key', (
      SELECT h.key FROM workflow_events_history AS h
      WHERE h.workflow_uuid = o.workflow_uuid AND h.function_id = o.function_id LIMIT 1))
    WHEN o.function_name LIKE 'DBOS.patch-%' THEN json_object('patch', SUBSTR(o.function_name, 12))
    WHEN o.function_name LIKE 'DBOS.%' THEN json_object('operation', o.function_name)
    ELSE json_object('activity_name', o.function_name, 'duration_ms', o.completed_at_epoch_ms - o.started_at_epoch_ms)
  END,
  IIF(p.part = 1 AND o.function_name <> 'DBOS.sleep', IIF(o.error IS NULL, 'result', 'error'), NULL),
  IIF(p.part = 1 AND o.function_name <> 'DBOS.sleep', COALESCE(o.output, o.error), NULL),
  o.serialization,
  'step:' || o.function_id || IIF(p.part = 0, ':begun:', ':done:') || COALESCE(o.completed_at_epoch_ms, 0)
FROM operation_outputs AS o
JOIN (SELECT 0 AS part UNION ALL SELECT 1) AS p
  ON (p.part = 1 OR o.function_name = 'DBOS.sleep'
    OR (o.function_name NOT LIKE 'DBOS.%' AND o.child_workflow_id IS NULL))
  -- A sleep records when it ends: a number, or superjson that contains it. The timer of a wait is recorded before it ends,
  -- and says nothing of how the wait ended.
  AND (p.part = 0 OR o.function_name <> 'DBOS.sleep'
    OR CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER)
      <= MIN(o.completed_at_epoch_ms, CAST(unixepoch('subsec') * 1000 AS INTEGER)))
-- Only the events of a sleep are stored one by one. Those of a step are looked for once, before they are told apart.
WHERE (o.function_name = 'DBOS.sleep' OR NOT EXISTS (
    SELECT 1 FROM journal AS s
    WHERE s.workflow_id = o.workflow_uuid AND s.step = o.function_id AND s.completed_at = COALESCE(o.completed_at_epoch_ms, 0)))
  AND (o.function_name <> 'DBOS.sleep' OR NOT EXISTS (
    SELECT 1 FROM journal AS s
    WHERE s.workflow_id = o.workflow_uuid AND s.step = o.function_id AND s.completed_at = COALESCE(o.completed_at_epoch_ms, 0)
      AND (s.event_type = 'TimerFired') = (p.part = 1)))
UNION ALL
SELECT n.destination_uuid, 1, n.created_at_epoch_ms, NULL, 0, NULL, 'SignalReceived', NULL, NULL, NULL,
  json_object('signal_name', NULLIF(n.topic, '__null__topic__'), 'message_id', n.message_uuid),
  'input', n.message, n.serialization, 'message:' || n.message_uuid
FROM notifications AS n
WHERE NOT EXISTS (
  SELECT 1 FROM journal AS s WHERE s.workflow_id = n.destination_uuid AND s.key = 'message:' || n.message_uuid)
UNION ALL
SELECT w.workflow_uuid, 2, COALESCE(w.completed_at, w.updated_at), NULL, 0, NULL,
  CASE w.status WHEN 'SUCCESS' THEN 'WorkflowCompleted' WHEN 'ERROR' THEN 'WorkflowFailed' ELSE 'WorkflowCanceled' END,
  NULL, NULL, NULL, json_object('duration_ms', COALESCE(w.completed_at, w.updated_at) - w.created_at),
  CASE w.status WHEN 'SUCCESS' THEN 'result' WHEN 'ERROR' THEN 'error' END,
  COALESCE(w.output, r.output, w.error, r.error), w.serialization, 'outcome:' || w.owner_xid
FROM workflow_status AS w
LEFT JOIN workflow_output AS r ON r.workflow_uuid = w.workflow_uuid
WHERE (w.status IN ('SUCCESS', 'ERROR') OR (w.status = 'CANCELLED' AND COALESCE((
  SELECT j.event_type FROM journal AS j
  WHERE j.workflow_id = w.workflow_uuid AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
  ORDER BY j.seq DESC LIMIT 1), '') <> 'WorkflowTimedOut')) AND NOT EXISTS (
  SELECT 1 FROM journal AS s
  WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL
    AND ((s.owner = w.owner_xid AND s.event_type IN ('WorkflowCompleted', 'WorkflowFailed')) OR s.key = 'outcome:' || w.owner_xid))
UNION ALL
-- Before a workflow that was started under the same ID later.
SELECT g.workflow_uuid, 0, g.deleted_at, NULL, 0, NULL, 'WorkflowDeleted', NULL, NULL, g.actor,
  json_patch('{}', json_object('workflow_name', g.name, 'reason', g.reason)), NULL, NULL, NULL, 'deleted:' || g.deleted_at
FROM deleted_workflows AS g;
`,
  },
  {
    number: 28,
    name: 'room_for_updates',
    isOnline: false,
    sql: `-- Nothing is found by the end of a lease: there are few engines.
DROP INDEX IF EXISTS idx_executors_lease_until;
`,
  },
  {
    number: 29,
    name: 'kept_history',
    isOnline: false,
    sql: `-- The history of a workflow stays with its export and its archived copy. Who deleted a workflow, and why, is a row of the
-- journal, so that readers who follow it see the deletion.

-- Without the foreign key, which was checked for each row: triggers take its place.
-- The first table is missing if this runs again.
CREATE TABLE IF NOT EXISTS deleted_workflows (workflow_uuid TEXT, deleted_at BIGINT, name TEXT, actor TEXT, reason TEXT);
DROP TABLE IF EXISTS journal_saved;
CREATE TABLE journal_saved AS
SELECT j.seq, j.workflow_id, j.at, j.event_type, j.step, j.attempt, j.executor, j.actor, j.details, j.key, j.owner, j.name, j.started_at, j.completed_at
FROM journal AS j;
-- Numbers are never used twice: readers remember the last one.
DROP TABLE IF EXISTS journal_last;
CREATE TABLE journal_last AS SELECT n.seq FROM sqlite_sequence AS n WHERE n.name = 'journal';
DROP TABLE journal;
CREATE TABLE journal (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  workflow_id TEXT NOT NULL,
  at BIGINT NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
  event_type TEXT NOT NULL,
  step INTEGER,
  attempt INTEGER,
  executor TEXT,
  actor TEXT,
  details TEXT,
  -- Tells a row that is written again from a new one, and a stored event from the same one in the other tables.
  key TEXT,
  -- The owner token of the run, if the row is about how an attempt began or how a workflow ended.
  owner TEXT,
  -- Of the step.
  name TEXT,
  started_at BIGINT,
  -- Tells the checkpoint of a step from a later one under the same number.
  completed_at BIGINT
);
INSERT INTO journal (seq, workflow_id, at, event_type, step, attempt, executor, actor, details, key, owner, name, started_at, completed_at)
SELECT j.seq, j.workflow_id, j.at, j.event_type, j.step, j.attempt, j.executor, j.actor, j.details, j.key, j.owner, j.name, j.started_at, j.completed_at
FROM journal_saved AS j
ORDER BY j.seq;
DROP TABLE journal_saved;
INSERT INTO sqlite_sequence (name, seq)
SELECT 'journal', 0 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence AS n WHERE n.name = 'journal');
UPDATE sqlite_sequence SET seq = MAX(seq, COALESCE((SELECT l.seq FROM journal_last AS l), 0)) WHERE name = 'journal';
DROP TABLE journal_last;
INSERT INTO journal (workflow_id, at, event_type, actor, details)
SELECT g.workflow_uuid, g.deleted_at, 'WorkflowDeleted', g.actor,
  json_patch('{}', json_object('workflow_name', g.name, 'reason', g.reason))
FROM deleted_workflows AS g
ORDER BY g.deleted_at;
CREATE INDEX IF NOT EXISTS idx_journal_workflow ON journal (workflow_id, step);
CREATE INDEX IF NOT EXISTS idx_journal_at ON journal (at);
CREATE UNIQUE INDEX IF NOT EXISTS uq_journal_key ON journal (workflow_id, key) WHERE key IS NOT NULL;

CREATE TRIGGER IF NOT EXISTS everstep_journal_not_deleted BEFORE DELETE ON journal
WHEN EXISTS (SELECT 1 FROM workflow_status AS w WHERE w.workflow_uuid = OLD.workflow_id)
  AND NOT EXISTS (SELECT 1 FROM journal_notes AS n WHERE n.kind = 'prune')
BEGIN
  SELECT RAISE(ABORT, 'The history of workflows is append-only.');
END;

-- A workflow may be given another ID.
CREATE TRIGGER IF NOT EXISTS everstep_journal_not_updated BEFORE UPDATE ON journal
WHEN OLD.workflow_id = NEW.workflow_id OR OLD.seq <> NEW.seq OR OLD.at <> NEW.at OR OLD.event_type <> NEW.event_type
  OR OLD.details IS NOT NEW.details OR OLD.actor IS NOT NEW.actor
BEGIN
  SELECT RAISE(ABORT, 'The history of workflows is append-only.');
END;

CREATE TRIGGER IF NOT EXISTS everstep_journal_deleted AFTER DELETE ON workflow_status
BEGIN
  DELETE FROM journal WHERE workflow_id = OLD.workflow_uuid AND event_type <> 'WorkflowDeleted';
END;

CREATE TRIGGER IF NOT EXISTS everstep_journal_renamed AFTER UPDATE OF workflow_uuid ON workflow_status
WHEN OLD.workflow_uuid <> NEW.workflow_uuid
BEGIN
  UPDATE journal SET workflow_id = NEW.workflow_uuid WHERE workflow_id = OLD.workflow_uuid;
END;

-- An import brings the rows of its workflows.
DROP TRIGGER IF EXISTS everstep_fork_journaled;
CREATE TRIGGER everstep_fork_journaled AFTER INSERT ON workflow_status
WHEN NEW.forked_from IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM journal_notes AS n WHERE n.kind = 'change' AND n.note ->> 'source' = 'import')
BEGIN
  INSERT INTO journal (workflow_id, at, event_type, actor, details)
  SELECT w.workflow_uuid, NEW.created_at, 'WorkflowForked', n.note ->> 'actor', json_patch('{}', json_object(
    'new_id', NEW.workflow_uuid, 'version', NEW.application_version, 'reason', n.note ->> 'reason'))
  FROM workflow_status AS w
  LEFT JOIN journal_notes AS n ON n.kind = 'change'
  WHERE w.workflow_uuid = NEW.forked_from;
END;

DROP VIEW IF EXISTS history;
CREATE VIEW history AS
SELECT e.workflow_id,
  CASE
    WHEN e.part = 0 THEN 0
    -- Before a workflow that was started under the same ID later, and after what happened to one that was restored.
    WHEN e.event_type = 'WorkflowDeleted' THEN COALESCE((
      SELECT IIF(n.created_at < e.at, 2, 0) FROM workflow_status AS n WHERE n.workflow_uuid = e.workflow_id), 0)
    ELSE 1
  END AS phase, e.at, e.step,
  IIF(e.part = 2 OR (e.step IS NOT NULL AND e.event_type IN ('ActivityScheduled', 'TimerScheduled')), 0, 1) AS part,
  e.seq, e.event_type, e.attempt, e.executor, e.actor,
  IIF(k.key IS NULL, e.details, json_patch(COALESCE(e.details, '{}'), k.details)) AS details,
  CASE
    WHEN e.part = 0 THEN 'input'
    WHEN w.status = 'SUCCESS' OR (o.function_id IS NOT NULL AND o.error IS NULL) THEN 'result'
    WHEN w.status = 'ERROR' OR o.error IS NOT NULL THEN 'error'
  END AS payload_name,
  CASE
    WHEN e.part = 0 THEN w.inputs
    WHEN w.workflow_uuid IS NOT NULL THEN COALESCE(w.output, w.error)
    ELSE COALESCE(o.output, o.error)
  END AS payload,
  COALESCE(w.serialization, o.serialization) AS serialization, e.key
FROM journal_events AS e
LEFT JOIN operation_outputs AS o
  ON o.workflow_uuid = e.workflow_id AND o.function_id = e.step AND o.completed_at_epoch_ms = e.completed_at AND e.part = 3
  AND e.event_type NOT IN ('TimerScheduled', 'TimerFired')
LEFT JOIN workflow_status AS w
  ON w.workflow_uuid = e.workflow_id AND (e.part = 0 OR (
    e.event_type IN ('WorkflowCompleted', 'WorkflowFailed') AND e.owner = w.owner_xid AND w.status IN ('SUCCESS', 'ERROR')))
-- What a rewind has deleted.
LEFT JOIN journal AS k
  ON k.workflow_id = e.workflow_id AND k.key = 'payload:' || e.seq AND e.part = 3 AND e.completed_at IS NOT NULL
UNION ALL
SELECT w.workflow_uuid, 0, w.created_at, NULL, 0, NULL, 'WorkflowStarted', NULL, NULL, NULL,
  json_patch('{}', json_object(
    'workflow_name', w.name, 'class_name', NULLIF(w.class_name, ''), 'config_name', NULLIF(w.config_name, ''),
    'queue', w.queue_name, 'priority', w.priority, 'partition_key', w.queue_partition_key,
    'timeout_ms', w.workflow_timeout_ms, 'parent_id', w.parent_workflow_id, 'forked_from', w.forked_from,
    'schedule', w.schedule_name, 'version', w.application_version)),
  'input', COALESCE(w.inputs, i.inputs), w.serialization, 'started'
FROM workflow_status AS w
LEFT JOIN workflow_input AS i ON i.workflow_uuid = w.workflow_uuid
WHERE NOT EXISTS (SELECT 1 FROM journal AS s WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL AND s.event_type = 'WorkflowStarted')
UNION ALL
SELECT w.workflow_uuid, 1, w.started_at_epoch_ms, NULL, 0, NULL, 'AttemptStarted', w.recovery_attempts, w.executor_id, NULL,
  json_patch('{}', json_object('version', w.application_version, 'queue', w.queue_name)), NULL, NULL, NULL,
  'attempt:' || w.owner_xid
FROM workflow_status AS w
WHERE w.started_at_epoch_ms IS NOT NULL AND w.status NOT IN ('ENQUEUED', 'DELAYED') AND NOT EXISTS (
  SELECT 1 FROM journal AS s
  WHERE s.workflow_id = w.workflow_uuid AND s.attempt IS NOT NULL
    AND (s.owner = w.owner_xid OR s.key = 'attempt:' || w.owner_xid))
UNION ALL
SELECT o.workflow_uuid, 1,
  CASE
    WHEN p.part = 0 THEN COALESCE(o.started_at_epoch_ms, o.completed_at_epoch_ms, o.retention_timestamp)
    WHEN o.function_name = 'DBOS.sleep' THEN COALESCE(
      CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER), o.completed_at_epoch_ms)
    ELSE COALESCE(o.completed_at_epoch_ms, o.retention_timestamp)
  END,
  o.function_id, p.part, NULL,
  CASE
    WHEN o.function_name = 'DBOS.sleep' THEN IIF(p.part = 0, 'TimerScheduled', 'TimerFired')
    WHEN p.part = 0 THEN 'ActivityScheduled'
    WHEN o.function_name = 'DBOS.getResult' THEN 'ChildWorkflowCompleted'
    WHEN o.child_workflow_id IS NOT NULL AND o.function_name NOT LIKE 'DBOS.%' THEN 'ChildWorkflowStarted'
    WHEN o.function_name = 'DBOS.recv' THEN IIF(
      o.output IS NULL OR o.output = 'null' OR o.output LIKE '{"json":null%', 'ReceiveTimedOut', 'MessageConsumed')
    WHEN o.function_name = 'DBOS.setEvent' THEN 'EventSet'
    WHEN o.function_name = 'DBOS.closeStream' THEN 'StreamClosed'
    WHEN o.function_name LIKE 'DBOS.patch-%' THEN 'WorkflowPatched'
    WHEN o.function_name LIKE 'DBOS.%' THEN 'OperationCompleted'
    WHEN o.error IS NOT NULL THEN 'ActivityFailed'
    ELSE 'ActivityCompleted'
  END,
  NULL, NULL, NULL,
  CASE
    WHEN o.function_name = 'DBOS.sleep' THEN json_object(
      'timer_id', o.workflow_uuid || ':' || o.function_id, IIF(p.part = 0, 'fire_at', 'fired_at'),
      strftime('%Y-%m-%dT%H:%M:%fZ',
        CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER) / 1000.0, 'unixepoch'))
    WHEN p.part = 0 THEN json_object('activity_name', o.function_name, 'input', NULL)
    WHEN o.child_workflow_id IS NOT NULL THEN json_object('child_id', o.child_workflow_id, 'name', o.function_name)
    WHEN o.function_name = 'DBOS.setEvent' THEN json_object('key', (
      SELECT h.key FROM workflow_events_history AS h
      WHERE h.workflow_uuid = o.workflow_uuid AND h.function_id = o.function_id LIMIT 1))
    WHEN o.function_name LIKE 'DBOS.patch-%' THEN json_object('patch', SUBSTR(o.function_name, 12))
    WHEN o.function_name LIKE 'DBOS.%' THEN json_object('operation', o.function_name)
    ELSE json_object('activity_name', o.function_name, 'duration_ms', o.completed_at_epoch_ms - o.started_at_epoch_ms)
  END,
  IIF(p.part = 1 AND o.function_name <> 'DBOS.sleep', IIF(o.error IS NULL, 'result', 'error'), NULL),
  IIF(p.part = 1 AND o.function_name <> 'DBOS.sleep', COALESCE(o.output, o.error), NULL),
  o.serialization,
  'step:' || o.function_id || IIF(p.part = 0, ':begun:', ':done:') || COALESCE(o.completed_at_epoch_ms, 0)
FROM operation_outputs AS o
JOIN (SELECT 0 AS part UNION ALL SELECT 1) AS p
  ON (p.part = 1 OR o.function_name = 'DBOS.sleep'
    OR (o.function_name NOT LIKE 'DBOS.%' AND o.child_workflow_id IS NULL))
  -- A sleep records when it ends: a number, or superjson that contains it. The timer of a wait is recorded before it ends,
  -- and says nothing of how the wait ended.
  AND (p.part = 0 OR o.function_name <> 'DBOS.sleep'
    OR CAST(IIF(json_type(o.output) = 'object', o.output ->> '$.json', o.output) AS INTEGER)
      <= MIN(o.completed_at_epoch_ms, CAST(unixepoch('subsec') * 1000 AS INTEGER)))
-- Only the events of a sleep are stored one by one. Those of a step are looked for once, before they are told apart.
WHERE (o.function_name = 'DBOS.sleep' OR NOT EXISTS (
    SELECT 1 FROM journal AS s
    WHERE s.workflow_id = o.workflow_uuid AND s.step = o.function_id AND s.completed_at = COALESCE(o.completed_at_epoch_ms, 0)))
  AND (o.function_name <> 'DBOS.sleep' OR NOT EXISTS (
    SELECT 1 FROM journal AS s
    WHERE s.workflow_id = o.workflow_uuid AND s.step = o.function_id AND s.completed_at = COALESCE(o.completed_at_epoch_ms, 0)
      AND (s.event_type = 'TimerFired') = (p.part = 1)))
UNION ALL
SELECT n.destination_uuid, 1, n.created_at_epoch_ms, NULL, 0, NULL, 'SignalReceived', NULL, NULL, NULL,
  json_object('signal_name', NULLIF(n.topic, '__null__topic__'), 'message_id', n.message_uuid),
  'input', n.message, n.serialization, 'message:' || n.message_uuid
FROM notifications AS n
WHERE NOT EXISTS (
  SELECT 1 FROM journal AS s WHERE s.workflow_id = n.destination_uuid AND s.key = 'message:' || n.message_uuid)
UNION ALL
SELECT w.workflow_uuid, 2, COALESCE(w.completed_at, w.updated_at), NULL, 0, NULL,
  CASE w.status WHEN 'SUCCESS' THEN 'WorkflowCompleted' WHEN 'ERROR' THEN 'WorkflowFailed' ELSE 'WorkflowCanceled' END,
  NULL, NULL, NULL, json_object('duration_ms', COALESCE(w.completed_at, w.updated_at) - w.created_at),
  CASE w.status WHEN 'SUCCESS' THEN 'result' WHEN 'ERROR' THEN 'error' END,
  COALESCE(w.output, r.output, w.error, r.error), w.serialization, 'outcome:' || w.owner_xid
FROM workflow_status AS w
LEFT JOIN workflow_output AS r ON r.workflow_uuid = w.workflow_uuid
WHERE (w.status IN ('SUCCESS', 'ERROR') OR (w.status = 'CANCELLED' AND COALESCE((
  SELECT j.event_type FROM journal AS j
  WHERE j.workflow_id = w.workflow_uuid AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
  ORDER BY j.seq DESC LIMIT 1), '') <> 'WorkflowTimedOut')) AND NOT EXISTS (
  SELECT 1 FROM journal AS s
  WHERE s.workflow_id = w.workflow_uuid AND s.step IS NULL
    AND ((s.owner = w.owner_xid AND s.event_type IN ('WorkflowCompleted', 'WorkflowFailed')) OR s.key = 'outcome:' || w.owner_xid));

DROP TABLE deleted_workflows;
`,
  },
  {
    number: 30,
    name: 'checkpoints_without_key',
    isOnline: false,
    sql: `-- Empty on purpose. On Postgres the foreign key of operation_outputs is dropped here. SQLite checks it at little cost.
`,
  },
  {
    number: 31,
    name: 'orphaned_checkpoints',
    isOnline: false,
    sql: `-- Empty on purpose. On SQLite a foreign key keeps checkpoints to their workflow.
`,
  },
  {
    number: 32,
    name: 'unstarted_attempts',
    isOnline: false,
    sql: `-- A workflow that was claimed before there was a slot for it, and goes back to its queue before it has started, has lost no
-- attempt.
DROP TRIGGER IF EXISTS everstep_workflow_journaled;

CREATE TRIGGER IF NOT EXISTS everstep_workflow_journaled
AFTER UPDATE OF status, delay_until_epoch_ms, priority ON workflow_status
WHEN (OLD.status IS NOT NEW.status AND (
    NEW.status IN ('CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED')
    OR (OLD.status = 'PENDING' AND NEW.status IN ('ENQUEUED', 'DELAYED')
      AND (OLD.started_at_epoch_ms IS NOT NULL OR OLD.queue_name IS NULL OR NEW.status = 'DELAYED'))
    OR (OLD.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING') AND NEW.status IN ('ENQUEUED', 'DELAYED', 'PENDING'))))
  OR (OLD.status IN ('ENQUEUED', 'DELAYED') AND NEW.status IN ('ENQUEUED', 'DELAYED')
    AND OLD.delay_until_epoch_ms IS NOT NEW.delay_until_epoch_ms)
  OR (OLD.priority <> NEW.priority AND NEW.status IN ('ENQUEUED', 'DELAYED', 'PENDING'))
BEGIN
  INSERT INTO journal (workflow_id, at, event_type, attempt, executor, actor, details)
  SELECT NEW.workflow_uuid, c.at, k.kind,
    IIF(OLD.status = 'PENDING', OLD.recovery_attempts, NULL), IIF(OLD.status = 'PENDING', OLD.executor_id, NULL), c.actor,
    -- A merge with nothing removes the members that are null.
    json_patch('{}', json_patch(
      CASE
        WHEN k.kind = 'WorkflowTimedOut' THEN json_object(
          'from_status', OLD.status, 'queue', OLD.queue_name, 'started_at', OLD.started_at_epoch_ms,
          'deadline', NEW.workflow_deadline_epoch_ms, 'timeout_seconds', NEW.workflow_timeout_ms / 1000.0)
        WHEN k.kind = 'WorkflowCancelRequested' THEN json_object(
          'from_status', OLD.status, 'queue', OLD.queue_name, 'started_at', OLD.started_at_epoch_ms)
        WHEN k.kind = 'WorkflowDeadLettered' THEN json_object('attempts', OLD.recovery_attempts, 'queue', OLD.queue_name)
        WHEN k.kind IN ('WorkflowResumed', 'WorkflowRewound') THEN json_object(
          'from_status', OLD.status, 'queue', NEW.queue_name, 'attempts', OLD.recovery_attempts,
          'completed_at', OLD.completed_at, 'error', OLD.error, 'start_step', c.start_step)
        WHEN k.kind = 'WorkflowTaskYielded' THEN json_object(
          'until', NEW.delay_until_epoch_ms, 'started_at', OLD.started_at_epoch_ms)
        WHEN k.kind = 'AttemptLost' THEN json_object(
          'started_at', OLD.started_at_epoch_ms, 'version', OLD.application_version)
        WHEN k.kind = 'DelayChanged' THEN json_object('from', OLD.delay_until_epoch_ms, 'to', NEW.delay_until_epoch_ms)
        ELSE json_object('from', OLD.priority, 'to', NEW.priority)
      END,
      json_object('reason', c.reason, 'source', CASE
        WHEN c.source IS NOT NULL THEN c.source
        WHEN k.kind = 'WorkflowTimedOut' THEN 'deadline'
        WHEN k.kind = 'WorkflowCancelRequested' THEN 'api'
        WHEN k.kind = 'WorkflowResumed' THEN 'resume'
        WHEN k.kind = 'WorkflowRewound' THEN 'rewind'
        WHEN k.kind = 'AttemptLost' THEN 'recovery' END)))
  FROM (
    SELECT n.note ->> 'source' AS source, n.note ->> 'reason' AS reason, n.note ->> 'actor' AS actor,
      n.note ->> 'startStep' AS start_step,
      IIF(NEW.updated_at <> OLD.updated_at, NEW.updated_at, CAST(unixepoch('subsec') * 1000 AS INTEGER)) AS at
    FROM (SELECT 1) LEFT JOIN journal_notes AS n ON n.kind = 'change') AS c
  CROSS JOIN (
    SELECT CASE
      WHEN NEW.status = 'CANCELLED' AND OLD.status IS NOT 'CANCELLED' THEN IIF(
        COALESCE(
          (SELECT n.note ->> 'source' FROM journal_notes AS n WHERE n.kind = 'change'),
          IIF(NEW.workflow_deadline_epoch_ms <= NEW.updated_at, 'deadline', 'api')) = 'deadline',
        'WorkflowTimedOut', 'WorkflowCancelRequested')
      WHEN NEW.status = 'MAX_RECOVERY_ATTEMPTS_EXCEEDED' AND OLD.status IS NOT NEW.status THEN 'WorkflowDeadLettered'
      WHEN EXISTS (SELECT 1 FROM journal_notes AS n WHERE n.kind = 'change' AND n.note ->> 'source' = 'rewind')
        THEN 'WorkflowRewound'
      WHEN EXISTS (SELECT 1 FROM journal_notes AS n WHERE n.kind = 'change' AND n.note ->> 'source' = 'resume')
        THEN 'WorkflowResumed'
      WHEN OLD.status IN ('SUCCESS', 'ERROR') THEN 'WorkflowRewound'
      WHEN OLD.status NOT IN ('ENQUEUED', 'DELAYED', 'PENDING') THEN 'WorkflowResumed'
      WHEN OLD.status = 'PENDING' AND NEW.status = 'DELAYED' THEN 'WorkflowTaskYielded'
      WHEN OLD.status = 'PENDING' AND NEW.status = 'ENQUEUED' THEN 'AttemptLost'
      WHEN OLD.delay_until_epoch_ms IS NOT NEW.delay_until_epoch_ms THEN 'DelayChanged'
      ELSE 'PriorityChanged' END AS kind) AS k;
END;
`,
  },
  {
    number: 33,
    name: 'running_index',
    isOnline: false,
    sql: `-- One index of running workflows instead of two. They are few, so those who look for all of them sort what they find: an index
-- in the order of creation cost each claim and each start a write.
CREATE INDEX IF NOT EXISTS idx_workflow_status_running
  ON workflow_status (owner_xid)
  WHERE status = 'PENDING';
DROP INDEX IF EXISTS idx_workflow_status_owner;
DROP INDEX IF EXISTS idx_workflow_status_pending;
`,
  },
  {
    number: 34,
    name: 'optional_queue_index',
    isOnline: false,
    sql: `-- The index for lists by queue is optional (\`everstep index create queueName\`). It cost each workflow of a queue three writes.
DROP INDEX IF EXISTS idx_workflow_status_listing_queue;
`,
  },
  {
    number: 35,
    name: 'checked_steps',
    isOnline: false,
    sql: `-- On Postgres, the checkpoints of transactions in the system database are not checked twice. SQLite has a foreign key.
`,
  },
];
