// Who owns a workflow, by the fencing token in its row. The token stays in the row when its run records the outcome, so
// that an outcome, too, can be traced to the run that wrote it.
import type { WorkflowRecord } from '../../kernel/workflow/records.js';
import { lock, oneOf, rows, sql, table } from '../../kernel/sql/sql.js';
import { TableColumns } from '../../database/columns.js';
import type { Database, Reader } from '../../database/database.js';
import type { Owned } from './lifecycle.js';
import { isPending } from './states.js';

const workflows = table('workflow_status');

/** The owner of a workflow, and what it has recorded as the outcome. */
export type OwnerRow = Pick<WorkflowRecord, 'workflowID' | 'status' | 'owner'>;
export type OutcomeRow = OwnerRow & Pick<WorkflowRecord, 'output' | 'error'>;

const ownerColumns = new TableColumns<OwnerRow>([
  ['workflowID', 'workflow_uuid', 'text'],
  ['status', 'status', 'text'],
  ['owner', 'owner_xid', 'text'],
]);
const selectedOwner = ownerColumns.select('w');

/** The owners of the existing workflows among these IDs, by ID. */
export async function findOwners(
  database: Reader,
  workflowIDs: readonly string[],
): Promise<ReadonlyMap<string, OwnerRow>> {
  const found = await database.read(sql`
    SELECT ${selectedOwner}
    FROM ${workflows} AS w
    WHERE w.workflow_uuid ${oneOf([...new Set(workflowIDs)])}`);
  return new Map(found.map((row) => [row['workflow_uuid'] as string, ownerColumns.toRecord(row)]));
}

/** Whether a run owns its workflow, or has ended it. Other states mean that the workflow was taken from it. */
export function belongsTo(row: OwnerRow | undefined, owner: string): boolean {
  return row?.owner === owner && (row.status === 'PENDING' || row.status === 'SUCCESS' || row.status === 'ERROR');
}

/** Those of the workflows whose rows other transactions have locked. Postgres only. */
export async function findLocked(
  database: Database,
  workflowIDs: readonly string[],
  lockTimeoutMs: number,
): Promise<Set<string>> {
  const existing = await findOwners(database, workflowIDs);
  const [free = []] = await database.commit(
    [
      sql`
        SELECT w.workflow_uuid
        FROM ${workflows} AS w
        WHERE w.workflow_uuid ${oneOf([...existing.keys()])}
        ${lock('skip', 'w')}`,
    ],
    { lockTimeoutMs },
  );
  const locked = new Set(existing.keys());
  for (const row of free) locked.delete(row['workflow_uuid'] as string);
  return locked;
}

const ownedColumns = [
  { name: 'ordinal', type: 'int' },
  { name: 'id', type: 'text' },
  { name: 'owner', type: 'text' },
] as const;

function ownedRows(owned: readonly Owned[]) {
  return rows(
    'r',
    ownedColumns,
    owned.map(({ workflowID, owner }, ordinal) => [ordinal, workflowID, owner]),
  );
}

const outcomeColumns = new TableColumns<OutcomeRow>([
  ...ownerColumns.columns.map(({ field, name, type }) => [field, name, type] as const),
  ['output', 'output', 'text'],
  ['error', 'error', 'text'],
]);
const selectedOutcome = outcomeColumns.select('w');

/** The rows that these runs still own or have ended, by the ordinal of the run. */
export async function findOutcomesOf(
  database: Reader,
  owned: readonly Owned[],
): Promise<ReadonlyMap<number, OutcomeRow>> {
  const found = await database.read(sql`
    SELECT r.ordinal, ${selectedOutcome}
    FROM ${ownedRows(owned)}
    JOIN ${workflows} AS w ON w.workflow_uuid = r.id AND w.owner_xid = r.owner`);
  return new Map(found.map((row) => [row['ordinal'] as number, outcomeColumns.toRecord(row)]));
}

/**
 * The given owners that lost their workflow. A workflow may be given with several tokens: one run may be ending while the
 * next has started.
 */
export async function findLost<T extends Owned>(database: Database, owned: readonly T[]): Promise<Set<T>> {
  const lost = await database.read(sql`
    SELECT r.ordinal
    FROM ${ownedRows(owned)}
    WHERE NOT EXISTS (
      SELECT 1
      FROM ${workflows} AS w
      WHERE w.workflow_uuid = r.id AND w.owner_xid = r.owner AND ${isPending('w')})`);
  const ordinals = new Set(lost.map((row) => row['ordinal']));
  return new Set(owned.filter((_, ordinal) => ordinals.has(ordinal)));
}
