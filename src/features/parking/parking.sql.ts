// Parked workflows: their runs have left memory until a time, or until a row that they wait for is there. A parked workflow
// is DELAYED and keeps the owner token of the run that parked it, so that this run, and no other, may take it back before
// it is claimed again.
//
// Triggers wake the workflows in `parked_waits` in the commit that brings what they wait for. They note the waits when the row
// is written, and wake the workflows when the transaction commits, in the order of their IDs, so that a transaction that stays
// open locks none of them. Either that commit sees them parked, or parking sees what it has brought:
//
//   parking locks the row first         the writer waits for this lock, and its trigger sees the parked workflow
//   the writer of the row has locked it parking skips the workflow, and tries again later
//   the commit has ended                parking finds the row, and the workflow is not parked
import { lock, nowMs, oneOf, rows, type Sql, sql, table } from '../../kernel/sql/sql.js';
import { TableColumns } from '../../database/columns.js';
import type { Database, Executor, Row } from '../../database/database.js';
import { type Ready, toReady } from '../queue/delays.sql.js';
import { type Owned } from '../../run/rows/lifecycle.js';
import { INTERNAL_QUEUE } from '../queue/queue.js';
import { findOwners, type OwnerRow } from '../../run/rows/owners.js';
import { isPending, isWaiting } from '../../run/rows/states.js';
import { type AwaitedRow, findAwaited, toWait, waitColumns, waitKey } from './waits.sql.js';

/** A workflow to park. */
export interface Park extends Owned {
  /** When it continues at the latest. */
  readonly dueAt: number;
  /** What else it continues for. */
  readonly awaited: readonly AwaitedRow[];
}

export type ParkVerdict =
  | 'parked'
  /** The run still owns it. */
  | 'refused'
  /** The run no longer owns it. */
  | 'lost';

const workflows = table('workflow_status');
const parkedWaits = table('parked_waits');

const parkColumns = new TableColumns<Omit<Park, 'awaited'>>([
  ['workflowID', 'target_id', 'text'],
  ['owner', 'owner', 'text'],
  ['dueAt', 'due_at', 'bigint'],
]);

/** Parks the workflows that are still owned. The next claim is no recovery, so the attempt does not count. */
function parkIfOwned(parks: readonly Park[]): Sql {
  return sql`
    UPDATE ${workflows} AS w
    SET status = 'DELAYED', delay_until_epoch_ms = r.due_at, updated_at = ${nowMs},
      started_at_epoch_ms = CASE WHEN w.rate_limited = TRUE THEN w.started_at_epoch_ms END,
      queue_name = COALESCE(w.queue_name, ${INTERNAL_QUEUE}),
      recovery_attempts = CASE WHEN w.recovery_attempts > 0 THEN w.recovery_attempts - 1 ELSE 0 END
    FROM ${rows(
      'r',
      parkColumns.columns,
      parks.map((park) => parkColumns.toValues(park)),
    )}
    WHERE w.workflow_uuid = r.target_id AND w.owner_xid = r.owner AND ${isPending('w')}
    RETURNING workflow_uuid`;
}

/** Parks the workflows in one commit, and says what happened to each. May be repeated. */
export async function parkWorkflows(database: Database, parks: readonly Park[]): Promise<ParkVerdict[]> {
  const sleeping = parks.filter(({ awaited }) => awaited.length === 0);
  const waiting = parks.filter(({ awaited }) => awaited.length > 0);
  const slept = sleeping.length === 0 ? [] : await database.run(parkIfOwned(sleeping));
  const waited = waiting.length === 0 ? [] : await database.transaction((tx) => parkWaiting(tx, waiting));
  return judgeParks(database, parks, [...slept, ...waited]);
}

/** Parks those of the workflows whose rows can be locked and for which nothing has come. */
async function parkWaiting(tx: Executor, parks: readonly Park[]): Promise<Row[]> {
  const locked = await lockRows(tx, [...new Set(parks.flatMap(rowsOf))]);
  const ready = parks.filter((park) => rowsOf(park).every((workflowID) => locked.has(workflowID)));
  // A statement of its own: it sees what was committed before the locks.
  const reader = { read: (statement: Sql) => tx.run(statement) };
  const awaitedRows = ready.flatMap((park) => park.awaited);
  const there = ready.length === 0 ? new Set<string>() : await findAwaited(reader, awaitedRows);
  const leaving = ready.filter(({ awaited }) => !awaited.some((one) => there.has(waitKey(one))));
  if (leaving.length === 0) return [];
  const parked = await tx.run(parkIfOwned(leaving));
  const parkedIDs = new Set(parked.map((row) => row['workflow_uuid'] as string));
  const away = leaving.filter(({ workflowID }) => parkedIDs.has(workflowID));
  if (away.length > 0) await recordWaits(tx, away);
  return parked;
}

/** The workflows whose rows the commit that ends a wait has to lock. */
function rowsOf({ workflowID, awaited }: Park): string[] {
  return [workflowID, ...awaited.map((one) => one.workflowID)];
}

/** Skips rows that are locked: to wait for them could be a deadlock. */
async function lockRows(tx: Executor, workflowIDs: readonly string[]): Promise<ReadonlySet<string>> {
  const locked = await tx.run(sql`
    SELECT w.workflow_uuid
    FROM ${workflows} AS w
    WHERE w.workflow_uuid ${oneOf(workflowIDs)}
    ${lock('skip-keyed', 'w')}`);
  return new Set(locked.map((row) => row['workflow_uuid'] as string));
}

/** Replaces what earlier waits of the workflows have left. */
async function recordWaits(tx: Executor, parks: readonly Park[]): Promise<void> {
  const waits = parks.flatMap(({ workflowID, awaited }) => awaited.map((one) => toWait(workflowID, one)));
  const data = waits.map((wait) => waitColumns.toValues(wait));
  const outcomes = parks.flatMap(({ awaited }) => awaited.filter(({ kind }) => kind === 'outcome'));
  await tx.run(sql`
    DELETE FROM ${parkedWaits}
    WHERE workflow_uuid ${oneOf(parks.map(({ workflowID }) => workflowID))}`);
  await tx.run(sql`
    INSERT INTO ${parkedWaits} (${waitColumns.names})
    SELECT ${waitColumns.pass('r')}
    FROM ${rows('r', waitColumns.columns, data)}
    WHERE TRUE
    ON CONFLICT DO NOTHING`);
  // On Postgres the trigger on the ends of workflows passes over all others.
  if (outcomes.length === 0 || tx.dialect.name === 'sqlite') return;
  await tx.run(sql`
    UPDATE ${workflows}
    SET has_parked_waiter = TRUE
    WHERE workflow_uuid ${oneOf(outcomes.map(({ workflowID }) => workflowID))} AND has_parked_waiter IS NOT TRUE`);
}

async function judgeParks(database: Database, parks: readonly Park[], written: readonly Row[]): Promise<ParkVerdict[]> {
  if (written.length === parks.length) return parks.map(() => 'parked');
  const parked = new Set(written.map((row) => row['workflow_uuid'] as string));
  const missing = parks.filter(({ workflowID }) => !parked.has(workflowID));
  const owners = await findOwners(
    database,
    missing.map(({ workflowID }) => workflowID),
  );
  return parks.map(({ workflowID, owner }) =>
    parked.has(workflowID) ? 'parked' : explainPark(owners.get(workflowID), owner),
  );
}

function explainPark(row: OwnerRow | undefined, owner: string): ParkVerdict {
  if (row?.owner !== owner) return 'lost';
  if (row.status === 'PENDING') return 'refused';
  // An earlier attempt has parked it, and it may have come due since.
  return row.status === 'DELAYED' || row.status === 'ENQUEUED' ? 'parked' : 'lost';
}

/** Takes a parked workflow back for the run that parked it. False if it was claimed or changed meanwhile. May be repeated. */
export async function takeBack(database: Database, { workflowID, owner }: Owned): Promise<boolean> {
  const taken = await database.run(sql`
    UPDATE ${workflows}
    SET status = 'PENDING', delay_until_epoch_ms = NULL, started_at_epoch_ms = ${nowMs}, updated_at = ${nowMs},
      recovery_attempts = recovery_attempts + 1
    WHERE workflow_uuid = ${workflowID} AND owner_xid = ${owner} AND ${isWaiting()}
    RETURNING workflow_uuid`);
  if (taken.length > 0) return true;
  const row = (await findOwners(database, [workflowID])).get(workflowID);
  return row?.owner === owner && row.status === 'PENDING';
}

/** Enqueues a parked workflow whose run goes on before it is due. */
export async function enqueueParked(database: Database, { workflowID, owner }: Owned): Promise<Ready[]> {
  const enqueued = await database.run(sql`
    UPDATE ${workflows}
    SET status = 'ENQUEUED', updated_at = ${nowMs}
    WHERE workflow_uuid = ${workflowID} AND owner_xid = ${owner} AND ${isWaiting()}
    RETURNING queue_name, queue_partition_key`);
  return enqueued.map(toReady);
}
