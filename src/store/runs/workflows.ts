// The rows of `workflow_status`: creating them, finishing them, reading them. A statement here is guarded by the state
// that it expects and judged by what it returns.
import type { WorkflowRecord } from '../../model/records.js';
import type { OutcomeStatus } from '../../model/status.js';
import { lock, nowMs, oneOf, rows, type Sql, sql, table, type Value } from '../../sql/sql.js';
import { TableColumns, workflowColumns } from '../columns.js';
import type { Database, Reader } from '../database.js';
import { hasEnded, isPending } from './states.js';

/** What a caller says of a new workflow; the database adds the times. */
export interface NewWorkflow extends Pick<
  WorkflowRecord,
  | 'workflowID'
  | 'status'
  | 'name'
  | 'className'
  | 'configName'
  | 'inputs'
  | 'serialization'
  | 'authenticatedUser'
  | 'assumedRole'
  | 'authenticatedRoles'
  | 'executorID'
  | 'applicationVersion'
  | 'applicationID'
  | 'applicationName'
  | 'timeoutMs'
  | 'deadlineAt'
  | 'queueName'
  | 'queuePartitionKey'
  | 'deduplicationID'
  | 'priority'
  | 'isDebounced'
  | 'recoveryAttempts'
  | 'parentWorkflowID'
  | 'scheduleName'
  | 'attributes'
  | 'owner'
> {
  /** A fresh token; tells afterwards whether the row is the one of this call. */
  readonly creator: string;
  /** How the workflow has ended already: its outcome came in the same commit as its start. */
  readonly outcome?: Pick<Outcome, 'status' | 'output' | 'error'>;
  /** For a child: the token under which the parent must still be owned, or the child is not created. */
  readonly parentOwner: string | null;
  /** How long a DELAYED workflow waits from now on, by the database's clock. */
  readonly delayMs: number | null;
  /** For how long from now on further calls may put a debounced workflow off. */
  readonly debounceMs: number | null;
}

const newWorkflowColumns = new TableColumns<NewWorkflow>([
  ['workflowID', 'workflow_uuid', 'text'],
  ['name', 'name', 'text'],
  ['className', 'class_name', 'text'],
  ['configName', 'config_name', 'text'],
  ['inputs', 'inputs', 'text'],
  ['serialization', 'serialization', 'text'],
  ['authenticatedUser', 'authenticated_user', 'text'],
  ['assumedRole', 'assumed_role', 'text'],
  ['authenticatedRoles', 'authenticated_roles', 'text'],
  ['executorID', 'executor_id', 'text'],
  ['applicationVersion', 'application_version', 'text'],
  ['applicationID', 'application_id', 'text'],
  ['applicationName', 'application_name', 'text'],
  ['timeoutMs', 'workflow_timeout_ms', 'bigint'],
  ['queueName', 'queue_name', 'text'],
  ['queuePartitionKey', 'queue_partition_key', 'text'],
  ['deduplicationID', 'deduplication_id', 'text'],
  ['priority', 'priority', 'int'],
  ['isDebounced', 'is_debounced', 'bool'],
  ['recoveryAttempts', 'recovery_attempts', 'bigint'],
  ['parentWorkflowID', 'parent_workflow_id', 'text'],
  ['scheduleName', 'schedule_name', 'text'],
  ['attributes', 'attributes', 'json'],
  ['creator', 'creator_xid', 'text'],
]);

/** Columns that only serve to compute others and to guard. */
const helperColumns = [
  { name: 'status', type: 'text' },
  { name: 'owner_xid', type: 'text' },
  { name: 'deadline_at', type: 'bigint' },
  { name: 'delay_ms', type: 'bigint' },
  { name: 'debounce_ms', type: 'bigint' },
  { name: 'parent_owner', type: 'text' },
  { name: 'end_status', type: 'text' },
  { name: 'output', type: 'text' },
  { name: 'error', type: 'text' },
] as const;

function helperValues({ status, owner, deadlineAt, delayMs, debounceMs, parentOwner, outcome }: NewWorkflow): Value[] {
  return [
    status,
    owner,
    deadlineAt,
    delayMs,
    debounceMs,
    parentOwner,
    outcome?.status ?? null,
    outcome?.output ?? null,
    outcome?.error ?? null,
  ];
}

const unconditionally = sql`TRUE`;
export const lockedAgainstTakeOver = lock('share', 'w');
const workflowTable = table('workflow_status');

/**
 * True for a line `r` whose run owns its workflow. The workflow's row is locked against a take-over until the commit, so
 * that nothing of a former owner can slip in after one.
 */
export const isOwned: Sql = sql`EXISTS (
      SELECT 1
      FROM ${workflowTable} AS w
      WHERE w.workflow_uuid = r.workflow_uuid AND w.owner_xid = r.owner_xid AND ${isPending('w')}
      ${lockedAgainstTakeOver})`;

const insertColumns = [...newWorkflowColumns.columns, ...helperColumns];
const insertedColumns = newWorkflowColumns.pass('r');
const selectedColumns = workflowColumns.select('w');

/**
 * Creates the workflows that can be created and returns their tokens; an ID or deduplication ID in use is left alone.
 * `condition` speaks of the rows as `r`.
 */
export function insertWorkflows(workflows: readonly NewWorkflow[], condition: Sql = unconditionally): Sql {
  const data = workflows.map((workflow) => [...newWorkflowColumns.toValues(workflow), ...helperValues(workflow)]);
  return sql`
    INSERT INTO ${workflowTable}
      (${newWorkflowColumns.names}, status, owner_xid, output, error, created_at, updated_at, started_at_epoch_ms, completed_at,
       workflow_deadline_epoch_ms, delay_until_epoch_ms, debounce_deadline_epoch_ms)
    SELECT ${insertedColumns}, COALESCE(r.end_status, r.status), CASE WHEN r.end_status IS NULL THEN r.owner_xid END,
      r.output, r.error, t.now, t.now,
      CASE WHEN r.status = 'PENDING' THEN t.now END,
      CASE WHEN r.end_status IS NOT NULL THEN t.now END,
      COALESCE(r.deadline_at, CASE WHEN r.status = 'PENDING' THEN t.now + r.workflow_timeout_ms END),
      t.now + r.delay_ms, t.now + r.debounce_ms
    FROM ${rows('r', insertColumns, data)}
    CROSS JOIN (SELECT ${nowMs} AS now) AS t
    WHERE (r.parent_owner IS NULL OR EXISTS (
      SELECT 1
      FROM ${workflowTable} AS w
      WHERE w.workflow_uuid = r.parent_workflow_id AND w.owner_xid = r.parent_owner AND ${isPending('w')}
      ${lockedAgainstTakeOver})) AND ${condition}
    ON CONFLICT DO NOTHING
    RETURNING creator_xid, workflow_deadline_epoch_ms`;
}

/** Creates the workflow if its ID is free. Tells whether this very one is there, so that it can be tried again. */
export async function insertIfFree(database: Database, workflow: NewWorkflow): Promise<boolean> {
  const [, found = []] = await database.commit([
    insertWorkflows([workflow]),
    sql`SELECT w.creator_xid FROM ${workflowTable} AS w WHERE w.workflow_uuid = ${workflow.workflowID}`,
  ]);
  return found[0]?.['creator_xid'] === workflow.creator;
}

/** How a run ends. */
export interface Outcome {
  readonly workflowID: string;
  /** The token under which the run owns the workflow. */
  readonly owner: string;
  readonly status: OutcomeStatus;
  readonly output: string | null;
  readonly error: string | null;
}

// The key has a name of its own: RETURNING can name the updated table neither with an alias nor without.
const outcomeColumns = new TableColumns<Outcome>([
  ['workflowID', 'target_id', 'text'],
  ['owner', 'owner', 'text'],
  ['status', 'status', 'text'],
  ['output', 'output', 'text'],
  ['error', 'error', 'text'],
]);

/** Records the outcomes of the workflows that are still owned and returns their IDs. */
export function finishIfOwned(outcomes: readonly Outcome[]): Sql {
  return sql`
    UPDATE ${workflowTable} AS w
    SET status = r.status, output = r.output, error = r.error, updated_at = ${nowMs}, completed_at = ${nowMs},
      deduplication_id = NULL, owner_xid = NULL
    FROM ${rows(
      'r',
      outcomeColumns.columns,
      outcomes.map((outcome) => outcomeColumns.toValues(outcome)),
    )}
    WHERE w.workflow_uuid = r.target_id AND w.owner_xid = r.owner AND ${isPending('w')}
    RETURNING workflow_uuid`;
}

/** The workflows with these IDs that exist, in no order. */
export async function findWorkflows(database: Reader, workflowIDs: readonly string[]): Promise<WorkflowRecord[]> {
  const found = await database.read(sql`
    SELECT ${selectedColumns}
    FROM ${workflowTable} AS w
    WHERE w.workflow_uuid ${oneOf(workflowIDs)}`);
  return found.map((row) => workflowColumns.toRecord(row));
}

export interface DeduplicationKey {
  readonly queueName: string;
  readonly deduplicationID: string;
}

const deduplicationColumns = new TableColumns<DeduplicationKey>([
  ['queueName', 'queue_name', 'text'],
  ['deduplicationID', 'deduplication_id', 'text'],
]);

/** The workflows that hold one of these deduplication IDs. */
export async function findDeduplicationHolders(
  database: Reader,
  keys: readonly DeduplicationKey[],
): Promise<WorkflowRecord[]> {
  const found = await database.read(sql`
    SELECT ${selectedColumns}
    FROM ${rows(
      'k',
      deduplicationColumns.columns,
      keys.map((key) => deduplicationColumns.toValues(key)),
    )}
    JOIN ${workflowTable} AS w
      ON w.queue_name = k.queue_name AND w.deduplication_id = k.deduplication_id`);
  return found.map((row) => workflowColumns.toRecord(row));
}

/** How a workflow has ended. */
export type FinishedWorkflow = Pick<WorkflowRecord, 'workflowID' | 'status' | 'output' | 'error' | 'serialization'>;

const finishedColumns = new TableColumns<FinishedWorkflow>([
  ['workflowID', 'workflow_uuid', 'text'],
  ['status', 'status', 'text'],
  ['output', 'output', 'text'],
  ['error', 'error', 'text'],
  ['serialization', 'serialization', 'text'],
]);

/** Those of the workflows that have ended. An outcome that another library stored apart is found as well. */
export async function findFinished(database: Database, workflowIDs: readonly string[]): Promise<FinishedWorkflow[]> {
  const found = await database.read(sql`
    SELECT w.workflow_uuid, w.status, COALESCE(w.output, o.output) AS output, COALESCE(w.error, o.error) AS error,
      w.serialization
    FROM ${workflowTable} AS w
    LEFT JOIN ${table('workflow_output')} AS o ON o.workflow_uuid = w.workflow_uuid
    WHERE w.workflow_uuid ${oneOf(workflowIDs)} AND ${hasEnded('w')}`);
  return found.map((row) => finishedColumns.toRecord(row));
}

/**
 * Those of the given that own their workflow no more. One workflow may be given with several tokens: a run of it may be on
 * its way out while the next one has begun.
 */
export async function findLost<T extends { readonly workflowID: string; readonly owner: string }>(
  database: Database,
  owned: readonly T[],
): Promise<Set<T>> {
  const data = owned.map(({ workflowID, owner }, ordinal) => [ordinal, workflowID, owner]);
  const lost = await database.read(sql`
    SELECT r.ordinal
    FROM ${rows('r', OWNED_COLUMNS, data)}
    WHERE NOT EXISTS (
      SELECT 1
      FROM ${workflowTable} AS w
      WHERE w.workflow_uuid = r.id AND w.owner_xid = r.owner AND ${isPending('w')})`);
  const ordinals = new Set(lost.map((row) => row['ordinal']));
  return new Set(owned.filter((_, ordinal) => ordinals.has(ordinal)));
}

const OWNED_COLUMNS = [
  { name: 'ordinal', type: 'int' },
  { name: 'id', type: 'text' },
  { name: 'owner', type: 'text' },
] as const;
