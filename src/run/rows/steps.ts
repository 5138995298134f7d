// Rows of `operation_outputs`: a step's checkpoint, written once by the run that owns the workflow.
import type { StepRecord } from '../../kernel/workflow/records.js';
import {
  lock,
  oneOf,
  type RowColumn,
  rows,
  type Sql,
  sql,
  table,
  type Token,
  type Value,
} from '../../kernel/sql/sql.js';
import { checkpointColumns, stepColumns } from '../../database/columns.js';
import type { Database, Executor, Reader } from '../../database/database.js';
import type { JournalFact } from '../../features/history/facts.sql.js';
import type { JournalEntry } from '../../features/history/journal.sql.js';
import { isOwned, wasOwnedWhenCancelled } from './workflows.js';

/** A checkpoint and the owner token of its run. */
export interface Checkpoint {
  readonly owner: string;
  readonly step: StepRecord;
  /** The child that the checkpoint refers to. It is only written if this start created the child. */
  readonly child?: { readonly workflowID: string; readonly creator: string };
  /** The message that the checkpoint reports as sent. It is only written if the message exists. */
  readonly sentID?: string;
  /** The message that the checkpoint contains. It is only written if this step consumed the message. */
  readonly receivedID?: string;
  /** What it says about itself in the journal, in the same commit. */
  readonly fact?: JournalFact;
  /** Further events of the run, to write before it in the same commit. */
  readonly entries?: readonly JournalEntry[];
}

const passedColumns = checkpointColumns.pass('r');
const selectedColumns = checkpointColumns.select('o');
const outlineColumns = checkpointColumns.without('output', 'error');
/** The lock makes the planner look up each row; without it, it may hash the whole table first. */
const lockedAgainstHashing = lock('share', 'c');
const steps = table('operation_outputs');
const workflows = table('workflow_status');
const messages = table('notifications');

/** What a statement passes for each checkpoint, and on which rows `r` it depends besides ownership. */
export interface CheckpointForm {
  readonly columns: readonly RowColumn[];
  readonly condition: Sql;
  readonly toValues: (checkpoint: Checkpoint) => Value[];
}

const plain: CheckpointForm = {
  columns: [...checkpointColumns.columns, { name: 'owner_xid', type: 'text' }],
  condition: sql``,
  // Not spread: that enlarges the array for values to come.
  toValues: ({ owner, step }) => checkpointColumns.toValues(step).concat(owner),
};

const referring: CheckpointForm = {
  columns: [
    ...plain.columns,
    { name: 'child_id', type: 'text' },
    { name: 'child_creator', type: 'text' },
    { name: 'sent_id', type: 'text' },
    { name: 'received_id', type: 'text' },
  ],
  condition: sql`
      AND (r.child_id IS NULL OR EXISTS (
        SELECT 1
        FROM ${workflows} AS c
        WHERE c.workflow_uuid = r.child_id AND c.creator_xid = r.child_creator
        ${lockedAgainstHashing}))
      AND (r.sent_id IS NULL OR r.sent_id = (
        SELECT m.message_uuid
        FROM ${messages} AS m
        WHERE m.message_uuid = r.sent_id))
      AND (r.received_id IS NULL OR r.function_id = (
        SELECT m.consumed_by_function_id
        FROM ${messages} AS m
        WHERE m.message_uuid = r.received_id))`,
  toValues: (checkpoint) => {
    const { child, sentID, receivedID } = checkpoint;
    const references = [child?.workflowID, child?.creator, sentID, receivedID].map((value) => value ?? null);
    return [...plain.toValues(checkpoint), ...references];
  },
};

/** Most checkpoints refer to nothing. The conditions for those that do would make the statement longer to plan and run. */
export function formOf(checkpoints: readonly Checkpoint[]): CheckpointForm {
  return checkpoints.some(refersToAnother) ? referring : plain;
}

function refersToAnother({ child, sentID, receivedID }: Checkpoint): boolean {
  return child !== undefined || sentID !== undefined || receivedID !== undefined;
}

/** Writes the checkpoints of runs that own their workflows and returns their keys. */
export function insertCheckpoints(checkpoints: readonly Checkpoint[]): Sql {
  return insertAll(checkpoints, isOwned);
}

/** Writes the checkpoints of runs whose workflows were cancelled meanwhile, so that a resume does not repeat the steps. */
export function insertCheckpointsOfCancelled(checkpoints: readonly Checkpoint[]): Sql {
  return insertAll(checkpoints, wasOwnedWhenCancelled);
}

function insertAll(checkpoints: readonly Checkpoint[], mayWrite: Sql): Sql {
  const { columns, condition, toValues } = formOf(checkpoints);
  return insertCheckpointsFrom(rows('r', columns, checkpoints.map(toValues)), mayWrite, condition);
}

/** The same for rows `r` of a FROM item. */
export function insertCheckpointsFrom(source: Token, mayWrite: Sql, condition: Sql): Sql {
  return sql`
    INSERT INTO ${steps} (${checkpointColumns.names})
    SELECT ${passedColumns}
    FROM ${source}
    WHERE ${mayWrite} ${condition}
    ON CONFLICT DO NOTHING
    RETURNING workflow_uuid, function_id`;
}

/** All checkpoints of the workflows, by workflow and step. */
export async function loadSteps(database: Database, workflowIDs: readonly string[]): Promise<StepRecord[]> {
  const found = await database.read(sql`
    SELECT ${selectedColumns}
    FROM ${steps} AS o
    WHERE o.workflow_uuid ${oneOf(workflowIDs)}
    ORDER BY o.workflow_uuid, o.function_id`);
  return found.map((row) => checkpointColumns.toRecord(row));
}

/** Checkpoints of one workflow that are read together, in the order of their numbers. */
export interface StepPage {
  /** Only those with a greater number. */
  readonly after: number;
  readonly limit: number;
}

/** A page of a workflow's checkpoints, by number. */
export async function loadStepPage(
  database: Database,
  workflowID: string,
  { after, limit }: StepPage,
): Promise<StepRecord[]> {
  const found = await database.read(sql`
    SELECT ${selectedColumns}
    FROM ${steps} AS o
    WHERE o.workflow_uuid = ${workflowID} AND o.function_id > ${after}
    ORDER BY o.function_id
    LIMIT ${limit}`);
  return found.map((row) => checkpointColumns.toRecord(row));
}

/** The key of a checkpoint. */
export type StepKey = Pick<StepRecord, 'workflowID' | 'stepID'>;

const keyColumns = [
  { name: 'workflow_id', type: 'text' },
  { name: 'step_id', type: 'int' },
] as const;

/** The existing checkpoints among these, in no order. Reads no others of the workflows. */
export async function findSteps(database: Reader, keys: readonly StepKey[]): Promise<StepRecord[]> {
  const data = keys.map(({ workflowID, stepID }) => [workflowID, stepID]);
  const found = await database.read(sql`
    SELECT ${selectedColumns}
    FROM ${rows('r', keyColumns, data)}
    JOIN ${steps} AS o ON o.workflow_uuid = r.workflow_id AND o.function_id = r.step_id`);
  return found.map((row) => checkpointColumns.toRecord(row));
}

/** What a checkpoint takes up in memory besides its texts. */
const RECORD_BYTES = 300;

/** A checkpoint without its output and error, which are null, and about how many bytes it takes up with them. */
export interface StepOutline {
  readonly step: StepRecord;
  readonly bytes: number;
}

/** A page of a workflow's checkpoints, by number, without their texts. */
export async function outlineStepPage(
  database: Database,
  workflowID: string,
  { after, limit }: StepPage,
): Promise<StepOutline[]> {
  const found = await database.read(sql`
    SELECT ${outlineColumns.select('o')}, ${textBytesIn(database)} AS bytes
    FROM ${steps} AS o
    WHERE o.workflow_uuid = ${workflowID} AND o.function_id > ${after}
    ORDER BY o.function_id
    LIMIT ${limit}`);
  return found.map((row) => ({
    step: { ...outlineColumns.toRecord(row), output: null, error: null },
    bytes: RECORD_BYTES + Number(row['bytes']),
  }));
}

/** About how many bytes the checkpoints of each workflow take up in memory. Reads no texts on Postgres. */
export async function measureSteps(database: Database, workflowIDs: readonly string[]): Promise<Map<string, number>> {
  const found = await database.read(sql`
    SELECT o.workflow_uuid, COUNT(*) AS number, SUM(${textBytesIn(database)}) AS bytes
    FROM ${steps} AS o
    WHERE o.workflow_uuid ${oneOf(workflowIDs)}
    GROUP BY o.workflow_uuid`);
  return new Map(
    found.map((row) => [row['workflow_uuid'] as string, Number(row['bytes']) + RECORD_BYTES * Number(row['number'])]),
  );
}

function textBytesIn({ dialect }: Database): Sql {
  return dialect.name === 'postgres'
    ? sql`COALESCE(octet_length(o.output), 0) + COALESCE(octet_length(o.error), 0)`
    : sql`COALESCE(LENGTH(o.output), 0) + COALESCE(LENGTH(o.error), 0)`;
}

/** A page of a workflow's checkpoints, by number. */
export async function listSteps(
  database: Database,
  workflowID: string,
  { limit = Number.MAX_SAFE_INTEGER, offset = 0 }: { readonly limit?: number; readonly offset?: number },
): Promise<StepRecord[]> {
  const found = await database.read(sql`
    SELECT ${stepColumns.select('o')}
    FROM ${steps} AS o
    WHERE o.workflow_uuid = ${workflowID}
    ORDER BY o.function_id
    LIMIT ${limit} OFFSET ${offset}`);
  return found.map((row) => stepColumns.toRecord(row));
}

const KEY_COLUMNS = [
  { name: 'ordinal', type: 'int' },
  { name: 'id', type: 'text' },
  { name: 'step_id', type: 'int' },
] as const;

/** Those of the keys that have no checkpoint. */
export async function findMissingSteps<T extends StepKey>(tx: Executor, keys: readonly T[]): Promise<T[]> {
  const data = keys.map(({ workflowID, stepID }, ordinal) => [ordinal, workflowID, stepID]);
  const missing = await tx.run(sql`
    SELECT r.ordinal
    FROM ${rows('r', KEY_COLUMNS, data)}
    WHERE NOT EXISTS (SELECT 1 FROM ${steps} AS o WHERE o.workflow_uuid = r.id AND o.function_id = r.step_id)`);
  const ordinals = new Set(missing.map((row) => row['ordinal']));
  return keys.filter((_, ordinal) => ordinals.has(ordinal));
}
