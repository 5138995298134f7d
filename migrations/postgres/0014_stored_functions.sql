-- Enqueue a workflow or send a message from plain SQL, for example from a trigger or from an application in
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
