// The rows of the journal in exports and imports. They are numbered by the database that holds them, so an export names a row
// by its position in the list.
import { oneOf, rows, type Sql, sql, table } from '../../kernel/sql/sql.js';
import { TableColumns } from '../../database/columns.js';
import type { Executor, Row } from '../../database/database.js';

export interface TransferredEntry {
  readonly workflowID: string;
  readonly at: number;
  readonly eventType: string;
  readonly step: number | null;
  readonly attempt: number | null;
  readonly executor: string | null;
  readonly actor: string | null;
  readonly details: string | null;
  /** `payload:<position>` is what a rewind kept of the row at that position. */
  readonly key: string | null;
  readonly owner: string | null;
  readonly name: string | null;
  readonly startedAt: number | null;
  readonly completedAt: number | null;
}

export const transferredEntryColumns = new TableColumns<TransferredEntry>([
  ['workflowID', 'workflow_id', 'text'],
  ['at', 'at', 'bigint'],
  ['eventType', 'event_type', 'text'],
  ['step', 'step', 'int'],
  ['attempt', 'attempt', 'int'],
  ['executor', 'executor', 'text'],
  ['actor', 'actor', 'text'],
  ['details', 'details', 'json'],
  ['key', 'key', 'text'],
  ['owner', 'owner', 'text'],
  ['name', 'name', 'text'],
  ['startedAt', 'started_at', 'bigint'],
  ['completedAt', 'completed_at', 'bigint'],
]);

const journal = table('journal');
const PAYLOAD = 'payload:';

/** Uses idx_journal_workflow. */
export function entriesOf(workflowIDs: readonly string[]): Sql {
  return sql`
    SELECT r.seq, ${transferredEntryColumns.select('r')}
    FROM ${journal} AS r
    WHERE r.workflow_id ${oneOf(workflowIDs)}
    ORDER BY r.seq`;
}

/** The rows by workflow: its events, and after them the payloads that were kept. */
export function toEntries(found: readonly Row[]): Map<string, TransferredEntry[]> {
  const read = found.map((row) => ({ seq: String(row['seq']), entry: transferredEntryColumns.toRecord(row) }));
  const byWorkflow = new Map<string, TransferredEntry[]>();
  const positions = new Map<string, number>();
  for (const { seq, entry } of read) {
    if (isPayload(entry)) continue;
    const entries = byWorkflow.get(entry.workflowID);
    positions.set(seq, entries?.length ?? 0);
    if (entries) entries.push(entry);
    else byWorkflow.set(entry.workflowID, [entry]);
  }
  for (const { entry } of read) {
    if (isPayload(entry)) byWorkflow.get(entry.workflowID)?.push(...pointTo(entry, (seq) => positions.get(seq)));
  }
  return byWorkflow;
}

function isPayload({ key }: TransferredEntry): boolean {
  return key?.startsWith(PAYLOAD) ?? false;
}

/** The payload, with another number of its event. Nothing if that is missing. */
function pointTo(entry: TransferredEntry, find: (number: string) => number | undefined): TransferredEntry[] {
  const found = find(entry.key?.slice(PAYLOAD.length) ?? '');
  return found === undefined ? [] : [{ ...entry, key: `${PAYLOAD}${found}` }];
}

/** Rows per statement. */
const ROWS_MAX = 1000;

/** Adds the rows of the workflows, in their order. */
export async function insertEntries(
  tx: Executor,
  workflows: readonly { readonly journal: readonly TransferredEntry[] }[],
): Promise<void> {
  const events = workflows.flatMap((one) => one.journal.filter((entry) => !isPayload(entry)));
  const seqs = await insertRows(tx, events);
  let next = 0;
  const payloads = workflows.flatMap((one) => {
    const numbers = one.journal.map((entry) => (isPayload(entry) ? undefined : seqs[next++]));
    return one.journal.filter(isPayload).flatMap((entry) => pointTo(entry, (position) => numbers[Number(position)]));
  });
  await insertRows(tx, payloads);
}

const numbered = [{ name: 'position', type: 'int' }, ...transferredEntryColumns.columns] as const;

/** The numbers that the rows were given, in their order. */
async function insertRows(tx: Executor, entries: readonly TransferredEntry[]): Promise<number[]> {
  const seqs: number[] = [];
  for (let first = 0; first < entries.length; first += ROWS_MAX) {
    const data = entries
      .slice(first, first + ROWS_MAX)
      .map((entry, position) => [position, ...transferredEntryColumns.toValues(entry)]);
    const inserted = await tx.run(sql`
      INSERT INTO ${journal} (${transferredEntryColumns.names})
      SELECT ${transferredEntryColumns.pass('r')}
      FROM ${rows('r', numbered, data)}
      ORDER BY r.position
      RETURNING seq`);
    // Numbers grow in the order of insertion. That of the answer is not defined.
    seqs.push(...inserted.map((row) => Number(row['seq'])).sort((a, b) => a - b));
  }
  return seqs;
}
