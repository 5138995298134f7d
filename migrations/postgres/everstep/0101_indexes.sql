-- online
-- Everstep's indexes on the tables that it shares with DBOS. Those of workflows have conditions that are written so that no
-- other statement sees its own in them: on a table without statistics, the planner would read a claim by them.
-- The oldest message that was not received yet is found without passing all those that were.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_notifications_unconsumed
  ON {schema}.notifications (destination_uuid, topic, created_at_epoch_ms, message_uuid)
  WHERE consumed = FALSE;

-- Each claim looks for the latest version.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_application_versions_latest
  ON {schema}.application_versions (version_timestamp, version_id);

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

-- Figures of steps are counted by the time of their completion, which is also the order in which they are stored: a
-- block-range index costs next to nothing, the ordered one a write for each step.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_operation_outputs_completed_at
  ON {schema}.operation_outputs USING brin (completed_at_epoch_ms) WITH (autosummarize = on);

-- One index of running workflows instead of two. They are few, so those who look for all of them sort what they find: an index
-- in the order of creation cost each claim and each start a write, and the removal of entries that had died.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_running
  ON {schema}.workflow_status (owner_xid COLLATE "C")
  WHERE status = 'PENDING';

-- Users see parked workflows as running ones, in lists too. A million of them must not hide a few that are delayed.
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_workflow_status_listing_state
  ON {schema}.workflow_status
    ((CASE WHEN status = 'DELAYED' AND owner_xid LIKE '%.%' THEN 'PARKED' ELSE status END), created_at)
  WHERE CASE WHEN status IN ('ENQUEUED', 'DELAYED') THEN TRUE ELSE FALSE END;

DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_operation_outputs_completed_at_function_name_v2;
-- Checkpoints are deleted with their workflow. Those of databases without the foreign key are found by their primary key.
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_operation_outputs_retention;
DROP INDEX CONCURRENTLY IF EXISTS {schema}.idx_workflow_status_pending;
