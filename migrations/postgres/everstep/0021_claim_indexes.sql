-- online
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
