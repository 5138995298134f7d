-- enqueue_workflow stores the input in both places: DBOS 4 reads workflow_status only, and DBOS 5 may have left the input of a
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
