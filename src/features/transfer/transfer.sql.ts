// Export and import of whole workflows: their rows in all tables, without creator tokens. Those that have ended keep the
// owner's, by which the journal knows its rows about the last attempt.
import { oneOf, rows, type Sql, sql, table, type Token } from '../../kernel/sql/sql.js';
import type { StepRecord, WorkflowRecord } from '../../kernel/workflow/records.js';
import { hasEnded } from '../../kernel/workflow/status.js';
import { stepColumns, TableColumns, workflowColumns } from '../../database/columns.js';
import type { Database, Executor, Row } from '../../database/database.js';
import { noted } from '../history/notes.sql.js';
import { lacks } from '../../database/lacking.js';
import { asSeen } from '../parking/parked.sql.js';
import {
  entriesOf,
  insertEntries,
  toEntries,
  type TransferredEntry,
  transferredEntryColumns,
} from './transferred-journal.sql.js';

export type TransferredRow = Omit<WorkflowRecord, 'creator'>;

export interface TransferredEvent {
  readonly workflowID: string;
  readonly key: string;
  readonly text: string;
  readonly serialization: string | null;
}

export interface TransferredEventOfStep extends TransferredEvent {
  readonly stepID: number;
}

export interface TransferredStreamValue extends TransferredEventOfStep {
  readonly offset: number;
}

export interface TransferredMessage extends Omit<TransferredEvent, 'key'> {
  readonly messageID: string;
  readonly topic: string | null;
  readonly createdAt: number;
  readonly isConsumed: boolean;
  readonly consumedBy: number | null;
}

/** The parts of a workflow, by the names of their tables. */
export interface Transferred {
  readonly workflow_status: TransferredRow;
  readonly operation_outputs: readonly StepRecord[];
  readonly workflow_events: readonly TransferredEvent[];
  readonly workflow_events_history: readonly TransferredEventOfStep[];
  readonly streams: readonly TransferredStreamValue[];
  readonly notifications: readonly TransferredMessage[];
  /** In the order in which they were written. */
  readonly journal: readonly TransferredEntry[];
}

const eventSpec = [
  ['workflowID', 'workflow_uuid', 'text'],
  ['key', 'key', 'text'],
  ['text', 'value', 'text'],
  ['serialization', 'serialization', 'text'],
] as const;

/** The columns to transfer of each table. */
export const TRANSFERRED = {
  workflow_status: workflowColumns.without('creator') satisfies TableColumns<TransferredRow>,
  operation_outputs: stepColumns,
  workflow_events: new TableColumns<TransferredEvent>(eventSpec),
  workflow_events_history: new TableColumns<TransferredEventOfStep>([...eventSpec, ['stepID', 'function_id', 'int']]),
  streams: new TableColumns<TransferredStreamValue>([
    ...eventSpec,
    ['stepID', 'function_id', 'int'],
    ['offset', 'offset', 'int'],
  ]),
  notifications: new TableColumns<TransferredMessage>([
    ['messageID', 'message_uuid', 'text'],
    ['workflowID', 'destination_uuid', 'text'],
    ['topic', 'topic', 'text'],
    ['text', 'message', 'text'],
    ['serialization', 'serialization', 'text'],
    ['createdAt', 'created_at_epoch_ms', 'bigint'],
    ['isConsumed', 'consumed', 'bool'],
    ['consumedBy', 'consumed_by_function_id', 'int'],
  ]),
  journal: transferredEntryColumns,
} as const;

export type TransferredTable = keyof typeof TRANSFERRED;

const workflows = table('workflow_status');

/** The IDs of the workflows and all their descendants, parents first. */
export async function findTrees(database: Database, workflowIDs: readonly string[]): Promise<string[]> {
  // Uses idx_workflow_status_parent_workflow_id for each level.
  const found = await database.read(sql`
    WITH RECURSIVE tree(id, level) AS (
      SELECT w.workflow_uuid, 0 FROM ${workflows} AS w WHERE w.workflow_uuid ${oneOf(workflowIDs)}
      UNION
      SELECT c.workflow_uuid, tree.level + 1
      FROM tree
      JOIN ${workflows} AS c ON c.parent_workflow_id = tree.id
      WHERE tree.level < ${LEVELS_MAX}
    )
    SELECT tree.id, MAX(tree.level) AS level FROM tree GROUP BY tree.id ORDER BY level, tree.id`);
  return found.map((row) => row['id'] as string);
}

/** Rows written by other programs may form cycles. */
const LEVELS_MAX = 1000;

/** Reads a snapshot of the workflows in the order of the IDs. Deleted ones are omitted. */
export async function readTransferred(database: Database, workflowIDs: readonly string[]): Promise<Transferred[]> {
  return database.transaction(
    async (tx) => {
      const found: Row[][] = [];
      for (const statement of readStatements(workflowIDs)) found.push(await tx.run(statement));
      return toTransferred(workflowIDs, found);
    },
    { isSnapshot: true },
  );
}

/** The same for workflows that have ended, without a snapshot: in one round trip, and without the write lock of SQLite. */
export async function readEnded(database: Database, workflowIDs: readonly string[]): Promise<Transferred[]> {
  const statements = readStatements(workflowIDs);
  const found =
    database.dialect.name === 'postgres'
      ? await database.commit(statements)
      : await Promise.all(statements.map((statement) => database.read(statement)));
  return toTransferred(workflowIDs, found);
}

const PARTS = [
  'operation_outputs',
  'workflow_events',
  'workflow_events_history',
  'streams',
  'notifications',
] as const satisfies readonly PartTable[];

function readStatements(workflowIDs: readonly string[]): Sql[] {
  return [statusesOf(workflowIDs), entriesOf(workflowIDs), ...PARTS.map((name) => partsOf(name, workflowIDs))];
}

function toTransferred(
  workflowIDs: readonly string[],
  [statuses = [], entries = [], ...found]: readonly Row[][],
): Transferred[] {
  const journal = toEntries(entries);
  const byID = new Map(statuses.map((row) => [row['workflow_uuid'] as string, toStatus(row)]));
  const parts = PARTS.map((name, index) => [name, groupParts(name, found[index] ?? [])] as const);
  return workflowIDs.flatMap((workflowID) => {
    const status = byID.get(workflowID);
    if (!status) return [];
    const rest = Object.fromEntries(parts.map(([name, records]) => [name, records.get(workflowID) ?? []]));
    // The parts are those of `Transferred`, each with the records of its table.
    return { workflow_status: status, ...rest, journal: journal.get(workflowID) ?? [] } as unknown as Transferred;
  });
}

/** Includes inputs and outcomes that other libraries store in separate tables. */
function statusesOf(workflowIDs: readonly string[]): Sql {
  return sql`
    SELECT ${TRANSFERRED.workflow_status.select('w')}, i.inputs AS other_inputs, o.output AS other_output, o.error AS other_error
    FROM ${workflows} AS w
    LEFT JOIN ${table('workflow_input')} AS i ON i.workflow_uuid = w.workflow_uuid
    LEFT JOIN ${table('workflow_output')} AS o ON o.workflow_uuid = w.workflow_uuid
    WHERE w.workflow_uuid ${oneOf(workflowIDs)}`;
}

function toStatus(row: Row): TransferredRow {
  // What a parked workflow waits for is not part of an export: it is exported as one that runs, and its replay waits again.
  const record = asSeen(TRANSFERRED.workflow_status.toRecord(row));
  return {
    ...record,
    // An engine that owns an active workflow goes on with it, here.
    owner: hasEnded(record.status) ? record.owner : null,
    inputs: (row['inputs'] ?? row['other_inputs']) as string | null,
    output: (row['output'] ?? row['other_output']) as string | null,
    error: (row['error'] ?? row['other_error']) as string | null,
  };
}

type PartTable = Exclude<TransferredTable, 'workflow_status' | 'journal'>;
type PartOf<Name extends PartTable> = Transferred[Name][number];

const PART_ORDERS: Readonly<Record<PartTable, Sql>> = {
  operation_outputs: sql`r.function_id`,
  workflow_events: sql`r.key`,
  workflow_events_history: sql`r.function_id, r.key`,
  streams: sql`r.key, r."offset"`,
  notifications: sql`r.created_at_epoch_ms, r.message_uuid`,
};

function partsOf(name: PartTable, workflowIDs: readonly string[]): Sql {
  const key: Sql = name === 'notifications' ? sql`r.destination_uuid` : sql`r.workflow_uuid`;
  return sql`
    SELECT ${TRANSFERRED[name].select('r')}
    FROM ${table(name)} AS r
    WHERE ${key} ${oneOf(workflowIDs)}
    ORDER BY ${key}, ${PART_ORDERS[name]}`;
}

function groupParts(name: PartTable, found: readonly Row[]): Map<string, PartOf<PartTable>[]> {
  const byWorkflow = new Map<string, PartOf<PartTable>[]>();
  for (const row of found) {
    const record = TRANSFERRED[name].toRecord(row);
    const records = byWorkflow.get(record.workflowID);
    if (records) records.push(record);
    else byWorkflow.set(record.workflowID, [record]);
  }
  return byWorkflow;
}

/** The result for each workflow. */
export interface TransferVerdict {
  readonly written: readonly string[];
  /** Another workflow has the ID. */
  readonly existing: readonly string[];
  /** Another workflow of the queue holds the deduplication ID. */
  readonly duplicated: readonly string[];
}

export interface TransferOptions {
  /** Whether one workflow that cannot be written prevents all. */
  readonly isAllOrNone: boolean;
  /** Stored with each row, so that a retry after a lost response recognises what it wrote before. */
  readonly creator: string;
}

/** Inserts the workflows, each completely or not at all. */
export async function writeTransferred(
  database: Database,
  transferred: readonly Transferred[],
  options: TransferOptions,
): Promise<TransferVerdict> {
  const refused = new Error('Not all workflows could be written.');
  let verdict: TransferVerdict = { written: [], existing: [], duplicated: [] };
  try {
    await database.transaction(async (tx) => {
      // The trigger that notes a fork in its original would add what the original has, or had elsewhere.
      const note = lacks(tx, 'journal') ? undefined : ({ source: 'import' } as const);
      const fresh = new Set(await noted(tx, note, () => insertStatuses(tx, transferred, options)));
      verdict = await judge(tx, transferred, { fresh, creator: options.creator });
      if (options.isAllOrNone && verdict.written.length < transferred.length) throw refused;
      const wanted = transferred.filter(({ workflow_status }) => fresh.has(workflow_status.workflowID));
      for (const name of PARTS) {
        const records = wanted.flatMap((one): readonly PartOf<PartTable>[] => one[name]);
        await insertPart(tx, name, records);
      }
      if (note) await insertEntries(tx, wanted);
    });
    return verdict;
  } catch (error) {
    if (error !== refused) throw error;
    return { ...verdict, written: [] };
  }
}

async function insertStatuses(
  tx: Executor,
  transferred: readonly Transferred[],
  { creator }: TransferOptions,
): Promise<string[]> {
  const columns = TRANSFERRED.workflow_status;
  const data = transferred.map(({ workflow_status }) => columns.toValues(workflow_status));
  const inserted = await tx.run(sql`
    INSERT INTO ${workflows} (${columns.names}, creator_xid)
    SELECT ${columns.pass('r')}, CAST(${creator} AS TEXT)
    FROM ${rows('r', columns.columns, data)}
    WHERE TRUE
    ON CONFLICT DO NOTHING
    RETURNING workflow_uuid`);
  return inserted.map((row) => row['workflow_uuid'] as string);
}

async function judge(
  tx: Executor,
  transferred: readonly Transferred[],
  { fresh, creator }: { readonly fresh: ReadonlySet<string>; readonly creator: string },
): Promise<TransferVerdict> {
  const missing = transferred.map((one) => one.workflow_status.workflowID).filter((id) => !fresh.has(id));
  if (missing.length === 0) return { written: [...fresh], existing: [], duplicated: [] };
  const found = await tx.run(sql`
    SELECT w.workflow_uuid, w.creator_xid FROM ${workflows} AS w WHERE w.workflow_uuid ${oneOf(missing)}`);
  const creators = new Map(found.map((row) => [row['workflow_uuid'] as string, row['creator_xid'] as string | null]));
  return {
    written: [...fresh, ...missing.filter((id) => creators.get(id) === creator)],
    existing: missing.filter((id) => creators.has(id) && creators.get(id) !== creator),
    duplicated: missing.filter((id) => !creators.has(id)),
  };
}

/** Rows per statement. */
const ROWS_MAX = 1000;

async function insertPart<Name extends PartTable>(
  tx: Executor,
  name: Name,
  records: readonly PartOf<PartTable>[],
): Promise<void> {
  // The caller passes records of that table.
  const columns = TRANSFERRED[name] as unknown as TableColumns<PartOf<PartTable>>;
  const passed: Token = columns.pass('r');
  for (let first = 0; first < records.length; first += ROWS_MAX) {
    const data = records.slice(first, first + ROWS_MAX).map((record) => columns.toValues(record));
    await tx.run(sql`
      INSERT INTO ${table(name)} (${columns.names})
      SELECT ${passed}
      FROM ${rows('r', columns.columns, data)}`);
  }
}
