// Rows of `workflow_status`: creating, finishing and reading them. Each statement is guarded by the state that it expects
// and judged by what it returns.
import type { WorkflowRecord } from '../../kernel/workflow/records.js';
import type { OutcomeStatus } from '../../kernel/workflow/status.js';
import {
  lock,
  nowMs,
  oneOf,
  type RowColumn,
  rows,
  type Sql,
  sql,
  table,
  type Token,
  type Value,
} from '../../kernel/sql/sql.js';
import { TableColumns, workflowColumns } from '../../database/columns.js';
import type { Database, Reader } from '../../database/database.js';
import { insertedOwner, selectedCreator } from '../../database/lacking.js';
import type { JournalFact } from '../../features/history/facts.sql.js';
import type { JournalEntry } from '../../features/history/journal.sql.js';
import { hasEnded, isActive, isCancelled, isEnqueued, isInFlight, isPending, unindexed } from './states.js';

/** A workflow to create; the database adds the times. */
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
  /** A fresh token, to recognise the row of this call. */
  readonly creator: string;
  /** The outcome, if it is part of the same commit as the start. */
  readonly outcome?: Pick<Outcome, 'status' | 'output' | 'error' | 'fact'>;
  /** For a child: the owner token that the parent must still have, or the child is not created. */
  readonly parentOwner: string | null;
  /** The delay of a DELAYED workflow from now, by the database clock. */
  readonly delayMs: number | null;
  /** How long from now further calls may postpone a debounced workflow. */
  readonly debounceMs: number | null;
  /** What it says about itself in the journal, in the same commit. */
  readonly fact?: JournalFact;
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

/** Columns that are only used to compute others and in guards. */
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
 * True for a row `r` whose run owns its workflow. Locks the workflow's row against a takeover until the commit, so that a
 * former owner cannot write after one.
 */
export const isOwned: Sql = sql`EXISTS (
      SELECT 1
      FROM ${workflowTable} AS w
      WHERE w.workflow_uuid = r.workflow_uuid AND w.owner_xid = r.owner_xid AND ${isPending('w')}
      ${lockedAgainstTakeOver})`;

/** The same for a row `r` whose run owned its workflow when it was cancelled. A resume ends that. */
export const wasOwnedWhenCancelled: Sql = sql`EXISTS (
      SELECT 1
      FROM ${workflowTable} AS w
      WHERE w.workflow_uuid = r.workflow_uuid AND w.owner_xid = r.owner_xid AND ${isCancelled('w')}
      ${lockedAgainstTakeOver})`;

const isRunningInQueue = sql`w.status = 'PENDING' AND ${isInFlight('w')}`;

/** The time of the last row of the partition and priority of `r` in this state. */
function lastInPartition(isInState: Sql): Sql {
  return sql`SELECT (
            SELECT w.created_at
            FROM ${workflowTable} AS w
            WHERE w.queue_name = r.queue_name AND ${isInState} AND w.queue_partition_key = r.queue_partition_key
              AND w.priority = r.priority
            ORDER BY w.created_at DESC
            LIMIT 1) AS created_at`;
}

/**
 * In a partition, rows of one batch are a millisecond apart, and not earlier than what is in flight there: DBOS, which may serve
 * the queue too, knows no other order. Uses idx_workflow_status_partition_dequeue_v3.
 */
const createdInOrder: Sql = sql`CASE
        WHEN r.queue_partition_key IS NULL THEN t.now
        ELSE (
          SELECT CASE WHEN MAX(l.created_at) > t.now THEN MAX(l.created_at) + 1 ELSE t.now END
          FROM (${lastInPartition(isEnqueued('w'))}
            UNION ALL
            ${lastInPartition(isRunningInQueue)}) AS l
        ) + ROW_NUMBER() OVER (PARTITION BY r.queue_name, r.queue_partition_key ORDER BY r.creator_xid) - 1
      END`;
const createdNow: Sql = sql`t.now`;

const isOfOwnedParent: Sql = sql`(r.parent_owner IS NULL OR EXISTS (
      SELECT 1
      FROM ${workflowTable} AS w
      WHERE w.workflow_uuid = r.parent_workflow_id AND w.owner_xid = r.parent_owner AND ${isPending('w')}
      ${lockedAgainstTakeOver}))`;
const isChild = ({ parentOwner }: NewWorkflow): boolean => parentOwner !== null;

export const insertColumns: readonly RowColumn[] = [...newWorkflowColumns.columns, ...helperColumns];
const insertedColumns = newWorkflowColumns.pass('r');

export function insertValues(workflow: NewWorkflow): Value[] {
  return newWorkflowColumns.toValues(workflow).concat(helperValues(workflow));
}

/**
 * Creates the workflows whose ID and deduplication ID are free, and returns their creator tokens. `condition` refers to a
 * row as `r`.
 */
export function insertWorkflows(workflows: readonly NewWorkflow[], condition: Sql = unconditionally): Sql {
  return insertWorkflowsFrom(rows('r', insertColumns, workflows.map(insertValues)), workflows, condition);
}

/** The same for rows `r` of a FROM item. */
export function insertWorkflowsFrom(
  source: Token,
  workflows: readonly NewWorkflow[],
  condition: Sql = unconditionally,
): Sql {
  const createdAt = workflows.some(({ queuePartitionKey }) => queuePartitionKey !== null) ? createdInOrder : createdNow;
  return sql`
    INSERT INTO ${workflowTable}
      (${newWorkflowColumns.names}, status, owner_xid, output, error, created_at, updated_at, started_at_epoch_ms, completed_at,
       workflow_deadline_epoch_ms, delay_until_epoch_ms, debounce_deadline_epoch_ms)
    SELECT ${insertedColumns}, COALESCE(r.end_status, r.status), ${insertedOwner},
      r.output, r.error, ${createdAt}, t.now,
      CASE WHEN r.status = 'PENDING' THEN t.now END,
      CASE WHEN r.end_status IS NOT NULL THEN t.now END,
      COALESCE(r.deadline_at, CASE WHEN r.status = 'PENDING' THEN t.now + r.workflow_timeout_ms END),
      t.now + r.delay_ms, t.now + r.debounce_ms
    FROM ${source}
    CROSS JOIN (SELECT ${nowMs} AS now) AS t
    WHERE ${workflows.some(isChild) ? isOfOwnedParent : unconditionally} AND ${condition}
    ON CONFLICT DO NOTHING
    RETURNING ${selectedCreator}, workflow_deadline_epoch_ms`;
}

/** Creates the workflow if its ID is free. Returns whether the row is this call's, so it can be retried. */
export async function insertIfFree(database: Database, workflow: NewWorkflow): Promise<boolean> {
  const [, found = []] = await database.commit([
    insertWorkflows([workflow]),
    sql`SELECT ${selectedCreator} FROM ${workflowTable} AS w WHERE w.workflow_uuid = ${workflow.workflowID}`,
  ]);
  return found[0]?.['creator_xid'] === workflow.creator;
}

/** The outcome of a run. */
export interface Outcome {
  readonly workflowID: string;
  /** The owner token of the run. */
  readonly owner: string;
  readonly status: OutcomeStatus;
  readonly output: string | null;
  readonly error: string | null;
  /** What it says about itself in the journal, in the same commit. */
  readonly fact?: JournalFact;
  /** Further events of the run, to write before it in the same commit. */
  readonly entries?: readonly JournalEntry[];
}

// The key has another name because RETURNING cannot qualify the updated table's, with or without an alias.
export const outcomeColumns = new TableColumns<Outcome>([
  ['workflowID', 'target_id', 'text'],
  ['owner', 'owner', 'text'],
  ['status', 'status', 'text'],
  ['output', 'output', 'text'],
  ['error', 'error', 'text'],
]);

/** Writes the outcomes of workflows that are still owned and returns their IDs. The token stays: it says who ended them. */
export function finishIfOwned(outcomes: readonly Outcome[]): Sql {
  return finishIfOwnedFrom(
    rows(
      'r',
      outcomeColumns.columns,
      outcomes.map((outcome) => outcomeColumns.toValues(outcome)),
    ),
  );
}

/** The same for rows `r` of a FROM item. */
export function finishIfOwnedFrom(source: Token): Sql {
  return sql`
    UPDATE ${workflowTable} AS w
    SET status = r.status, output = r.output, error = r.error, updated_at = ${nowMs}, completed_at = ${nowMs},
      deduplication_id = NULL
    FROM ${source}
    WHERE w.workflow_uuid = r.target_id AND w.owner_xid = r.owner AND ${isPending('w')}
    RETURNING workflow_uuid`;
}

/** A workflow without its values, which may be large. */
export type WorkflowSummary = Omit<WorkflowRecord, 'inputs' | 'output' | 'error' | 'attributes'>;

const summaryColumns = workflowColumns.without('inputs', 'output', 'error', 'attributes');
const selectedSummary = summaryColumns.select('w');
const attributeColumns = new TableColumns<Pick<WorkflowRecord, 'attributes'>>([['attributes', 'attributes', 'json']]);
const selectedAttributes = attributeColumns.select('w');

/** Like `findWorkflows`, without the values. */
export async function findSummaries(database: Reader, workflowIDs: readonly string[]): Promise<WorkflowSummary[]> {
  const found = await database.read(sql`
    SELECT ${selectedSummary}
    FROM ${workflowTable} AS w
    WHERE w.workflow_uuid ${oneOf(workflowIDs)}`);
  return found.map((row) => summaryColumns.toRecord(row));
}

/** The existing workflows among these IDs, in no order. Includes values that other libraries store in separate tables. */
export async function findWorkflows(database: Reader, workflowIDs: readonly string[]): Promise<WorkflowRecord[]> {
  const found = await database.read(sql`
    SELECT ${selectedSummary}, ${selectedAttributes},
      COALESCE(w.inputs, i.inputs) AS inputs, COALESCE(w.output, o.output) AS output, COALESCE(w.error, o.error) AS error
    FROM ${workflowTable} AS w
    LEFT JOIN ${table('workflow_input')} AS i ON i.workflow_uuid = w.workflow_uuid
    LEFT JOIN ${table('workflow_output')} AS o ON o.workflow_uuid = w.workflow_uuid AND ${hasEnded('w')}
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

/** The workflows that hold these deduplication IDs. */
export async function findDeduplicationHolders(
  database: Reader,
  keys: readonly DeduplicationKey[],
): Promise<WorkflowSummary[]> {
  const found = await database.read(sql`
    SELECT ${selectedSummary}
    FROM ${rows(
      'k',
      deduplicationColumns.columns,
      keys.map((key) => deduplicationColumns.toValues(key)),
    )}
    JOIN ${workflowTable} AS w
      ON w.queue_name = k.queue_name AND w.deduplication_id = k.deduplication_id`);
  return found.map((row) => summaryColumns.toRecord(row));
}

const ORDINALS = [
  { name: 'ordinal', type: 'int' },
  { name: 'id', type: 'text' },
] as const;

/** How a workflow ended. */
export interface EndedWorkflow extends Pick<WorkflowRecord, 'workflowID' | 'output' | 'error' | 'serialization'> {
  /** Null: there is no such workflow. */
  readonly status: WorkflowRecord['status'] | null;
}

const endedColumns = new TableColumns<EndedWorkflow>([
  ['workflowID', 'workflow_uuid', 'text'],
  ['status', 'status', 'text'],
  ['output', 'output', 'text'],
  ['error', 'error', 'text'],
  ['serialization', 'serialization', 'text'],
]);

/**
 * The workflows among these that have ended or do not exist. Includes outcomes that other libraries store in a separate
 * table.
 */
export async function findEnded(database: Reader, workflowIDs: readonly string[]): Promise<EndedWorkflow[]> {
  const found = await database.read(sql`
    SELECT r.id AS workflow_uuid, w.status, COALESCE(w.output, o.output) AS output, COALESCE(w.error, o.error) AS error,
      w.serialization
    FROM ${rows(
      'r',
      ORDINALS,
      workflowIDs.map((workflowID, ordinal) => [ordinal, workflowID]),
    )}
    LEFT JOIN ${workflowTable} AS w ON w.workflow_uuid = r.id
    LEFT JOIN ${table('workflow_output')} AS o ON o.workflow_uuid = w.workflow_uuid
    WHERE w.workflow_uuid IS NULL OR ${hasEnded('w')}`);
  return found.map((row) => endedColumns.toRecord(row));
}

/** The workflows among these that exist and have not ended. */
export async function findActive(database: Reader, workflowIDs: readonly string[]): Promise<ReadonlySet<string>> {
  const found = await database.read(sql`
    SELECT w.workflow_uuid FROM ${workflowTable} AS w WHERE w.workflow_uuid ${oneOf(workflowIDs)} AND ${unindexed(isActive('w'))}`);
  return new Set(found.map((row) => row['workflow_uuid'] as string));
}

/** The one of the workflows that ended first, and of those that ended together the first of the list. */
export async function findEarliestEnd(database: Reader, workflowIDs: readonly string[]): Promise<string | undefined> {
  const [ended] = await database.read(sql`
    SELECT w.workflow_uuid
    FROM ${rows(
      'r',
      ORDINALS,
      workflowIDs.map((workflowID, ordinal) => [ordinal, workflowID]),
    )}
    JOIN ${workflowTable} AS w ON w.workflow_uuid = r.id
    WHERE ${hasEnded('w')}
    ORDER BY COALESCE(w.completed_at, w.updated_at), r.ordinal
    LIMIT 1`);
  return ended?.['workflow_uuid'] as string | undefined;
}
