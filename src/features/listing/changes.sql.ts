// Recently changed workflows, for live views. An index on the last change would cost every write. Workflows that were
// created, started or ended are at the end of other indexes; other changes are found by ID.
import { nowMs, oneOf, sql, table } from '../../kernel/sql/sql.js';
import type { WorkflowRecord } from '../../kernel/workflow/records.js';
import { TableColumns } from '../../database/columns.js';
import type { Database } from '../../database/database.js';
import { asSeen } from '../parking/parked.sql.js';

/** The fields of a changed workflow, without inputs and outputs. */
export type ChangedWorkflow = Pick<
  WorkflowRecord,
  | 'workflowID'
  | 'status'
  | 'name'
  | 'className'
  | 'queueName'
  | 'queuePartitionKey'
  | 'executorID'
  | 'applicationName'
  | 'parentWorkflowID'
  | 'createdAt'
  | 'updatedAt'
  | 'startedAt'
  | 'completedAt'
  | 'owner'
>;

export interface ChangesQuery {
  /** By the database clock. */
  readonly since: number;
  /** Workflows known to have changed. */
  readonly workflowIDs: readonly string[];
  /** The most to find by each kind of change. */
  readonly max: number;
}

const workflows = table('workflow_status');
const columns = new TableColumns<ChangedWorkflow>([
  ['workflowID', 'workflow_uuid', 'text'],
  ['status', 'status', 'text'],
  ['name', 'name', 'text'],
  ['className', 'class_name', 'text'],
  ['queueName', 'queue_name', 'text'],
  ['queuePartitionKey', 'queue_partition_key', 'text'],
  ['executorID', 'executor_id', 'text'],
  ['applicationName', 'application_name', 'text'],
  ['parentWorkflowID', 'parent_workflow_id', 'text'],
  ['createdAt', 'created_at', 'bigint'],
  ['updatedAt', 'updated_at', 'bigint'],
  ['startedAt', 'started_at_epoch_ms', 'bigint'],
  ['completedAt', 'completed_at', 'bigint'],
  ['owner', 'owner_xid', 'text'],
]);
const selected = columns.select('w');

export interface ChangedWorkflows {
  /** The time by the database clock. */
  readonly now: number;
  /** Latest change last. More than `max` means that there may be others. */
  readonly workflows: readonly ChangedWorkflow[];
}

/** The changed workflows and the time, in one statement: it is sent every second while a live view is open. */
export async function findChangedWorkflows(database: Database, query: ChangesQuery): Promise<ChangedWorkflows> {
  const { since, workflowIDs, max } = query;
  // Uses workflow_status_created_at_index, idx_workflow_status_started_at and idx_workflow_status_completed_at.
  const found = await database.read(sql`
    SELECT t.now, ${selected}
    FROM (SELECT ${nowMs} AS now) AS t
    LEFT JOIN ${workflows} AS w ON w.workflow_uuid IN (
      SELECT c.id FROM (
        SELECT n.workflow_uuid AS id FROM ${workflows} AS n
        WHERE n.created_at > ${since} ORDER BY n.created_at DESC LIMIT ${max + 1}) AS c
      UNION
      SELECT s.id FROM (
        SELECT n.workflow_uuid AS id FROM ${workflows} AS n
        WHERE n.started_at_epoch_ms > ${since} ORDER BY n.started_at_epoch_ms DESC LIMIT ${max + 1}) AS s
      UNION
      SELECT e.id FROM (
        SELECT n.workflow_uuid AS id FROM ${workflows} AS n
        WHERE n.completed_at > ${since} ORDER BY n.completed_at DESC LIMIT ${max + 1}) AS e
      UNION
      SELECT k.workflow_uuid FROM ${workflows} AS k WHERE k.workflow_uuid ${oneOf(workflowIDs)})
    ORDER BY w.updated_at, w.workflow_uuid`);
  return {
    now: Number(found[0]?.['now']),
    workflows: found.filter((row) => row['workflow_uuid'] !== null).map((row) => asSeen(columns.toRecord(row))),
  };
}
