// Workflows that have changed lately, for those who watch. There is no index on the time of the last change, which would
// cost every write; but what is created, started or ended stands at the end of an index. Other changes are found by ID.
import { oneOf, sql, table } from '../../sql/sql.js';
import type { WorkflowRecord } from '../../model/records.js';
import { TableColumns } from '../columns.js';
import type { Database } from '../database.js';

/** What is told of a workflow that has changed. Its values are not. */
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
>;

export interface ChangesQuery {
  /** By the database's clock. */
  readonly since: number;
  /** Workflows of which a change is known already. */
  readonly workflowIDs: readonly string[];
  /** More than so many are not looked for. */
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
]);
const selected = columns.select('w');

/** The changed workflows, the latest change last. More of them than asked for means that there may be still more. */
export async function findChangedWorkflows(database: Database, query: ChangesQuery): Promise<ChangedWorkflow[]> {
  const { since, workflowIDs, max } = query;
  // Rides workflow_status_created_at_index, idx_workflow_status_started_at and idx_workflow_status_completed_at.
  const found = await database.read(sql`
    SELECT ${selected}
    FROM ${workflows} AS w
    WHERE w.workflow_uuid IN (
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
  return found.map((row) => columns.toRecord(row));
}
