// Parked workflows: their runs have left memory until a time, or until a row that they wait for is there. A parked workflow
// is DELAYED and keeps the owner token of the run that parked it, so that this run, and no other, may take it back before
// it is claimed again.
//
// Triggers wake the workflows in `parked_waits` in the commit that brings what they wait for. Either that commit sees them
// parked, or parking sees what it has brought:
//
//   parking locks the row first   the commit waits for this lock, and its trigger sees the parked workflow
//   the commit has locked it      parking skips the workflow, and tries again later
//   the commit has ended          parking finds the row, and the workflow is not parked
import { lock, nowMs, oneOf, rows, type Sql, sql, table } from '../../sql/sql.js';
import { TableColumns } from '../columns.js';
import type { Database, Executor, Reader, Row } from '../database.js';
import { type EventKey, eventKey, findEvents } from '../messaging/events.js';
import { findOldestMessages, type MessageKey, messageKey } from '../messaging/messages.js';
import { INTERNAL_QUEUE, type Owned } from '../runs/lifecycle.js';
import { findOwners, type OwnerRow } from '../runs/owners.js';
import { isPending, isWaiting } from '../runs/states.js';
import { findFinished } from '../runs/workflows.js';

/** A workflow to park. */
export interface Park extends Owned {
  /** When it continues at the latest. */
  readonly dueAt: number;
  /** What else it continues for. */
  readonly awaited: readonly AwaitedRow[];
}

/** A row that a workflow waits for: a message to it, an event, or the outcome of a workflow. */
export type AwaitedRow =
  | ({ readonly kind: 'message' } & MessageKey)
  | ({ readonly kind: 'event' } & EventKey)
  | { readonly kind: 'outcome'; readonly workflowID: string };

/** The key of an awaited row, as in the triggers. */
export function waitKey(awaited: AwaitedRow): string {
  switch (awaited.kind) {
    case 'message':
      return `message:${messageKey(awaited)}`;
    case 'event':
      return `event:${eventKey(awaited)}`;
    case 'outcome':
      return `outcome:${awaited.workflowID}`;
  }
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
  const there = ready.length === 0 ? new Set<string>() : await findAwaited(tx, ready);
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

/** The keys of the awaited rows that are there. */
async function findAwaited(tx: Executor, parks: readonly Park[]): Promise<ReadonlySet<string>> {
  const awaited = parks.flatMap((park) => park.awaited);
  const reader = { read: (statement: Sql) => tx.run(statement) };
  const messages = awaited.filter((one) => one.kind === 'message');
  const events = awaited.filter((one) => one.kind === 'event');
  const outcomes = awaited.filter((one) => one.kind === 'outcome');
  const foundMessages = messages.length === 0 ? [] : await findOldestMessages(reader, messages);
  const foundEvents = events.length === 0 ? [] : await findEvents(reader, events);
  const outcomeIDs = outcomes.map(({ workflowID }) => workflowID);
  const ended = new Set(
    outcomes.length === 0 ? [] : (await findFinished(reader, outcomeIDs)).map(({ workflowID }) => workflowID),
  );
  const there = [
    ...messages.filter((_, index) => foundMessages[index] !== undefined),
    ...events.filter((_, index) => foundEvents[index] !== undefined),
    ...outcomes.filter(({ workflowID }) => ended.has(workflowID)),
  ];
  return new Set(there.map(waitKey));
}

const waitColumns = [
  { name: 'wait_key', type: 'text' },
  { name: 'workflow_uuid', type: 'text' },
] as const;

/** Replaces what earlier waits of the workflows have left. */
async function recordWaits(tx: Executor, parks: readonly Park[]): Promise<void> {
  const data = parks.flatMap(({ workflowID, awaited }) => awaited.map((one) => [waitKey(one), workflowID]));
  const outcomes = parks.flatMap(({ awaited }) => awaited.filter(({ kind }) => kind === 'outcome'));
  await tx.run(sql`
    DELETE FROM ${parkedWaits}
    WHERE workflow_uuid ${oneOf(parks.map(({ workflowID }) => workflowID))}`);
  await tx.run(sql`
    INSERT INTO ${parkedWaits} (wait_key, workflow_uuid)
    SELECT r.wait_key, r.workflow_uuid
    FROM ${rows('r', waitColumns, data)}
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

/** Whether workflows are parked until a row is there. */
export async function hasParkedWaits(database: Reader): Promise<boolean> {
  return (await database.read(sql`SELECT 1 FROM ${parkedWaits} LIMIT 1`)).length > 0;
}
