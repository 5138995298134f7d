// What parked workflows wait for: a message to them, an event or the outcome of another workflow. `parked_waits` has a row
// for each.
//
// Triggers wake the workflows. Some commits they cannot see, or do not run for: `findMissed` looks for what has come all the
// same.
import { lock, nowMs, oneOf, sql, table } from '../../kernel/sql/sql.js';
import { TableColumns } from '../../database/columns.js';
import type { Database, Reader, Row } from '../../database/database.js';
import { type EventKey, eventKey, findEvents } from '../message/events.sql.js';
import { findOldestMessages, type MessageKey, messageKey } from '../message/messages.sql.js';
import { type Ready, toReady } from '../queue/delays.sql.js';
import { findActive } from '../../run/rows/workflows.js';
import { isParked } from './parked.sql.js';

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

/** A row of `parked_waits`. */
export interface ParkedWait {
  readonly key: string;
  readonly parkedID: string;
  readonly kind: AwaitedRow['kind'];
  readonly awaitedID: string;
  /** The topic or key. */
  readonly awaitedName: string | null;
}

const workflows = table('workflow_status');
const parkedWaits = table('parked_waits');

export const waitColumns = new TableColumns<ParkedWait>([
  ['key', 'wait_key', 'text'],
  ['parkedID', 'workflow_uuid', 'text'],
  ['kind', 'kind', 'text'],
  ['awaitedID', 'awaited_uuid', 'text'],
  ['awaitedName', 'awaited_name', 'text'],
]);

export function toWait(parkedID: string, awaited: AwaitedRow): ParkedWait {
  const { kind, workflowID: awaitedID } = awaited;
  return { key: waitKey(awaited), parkedID, kind, awaitedID, awaitedName: nameOf(awaited) };
}

function nameOf(awaited: AwaitedRow): string | null {
  switch (awaited.kind) {
    case 'message':
      return awaited.topic;
    case 'event':
      return awaited.key;
    case 'outcome':
      return null;
  }
}

function toAwaited({ kind, awaitedID, awaitedName }: ParkedWait): AwaitedRow {
  switch (kind) {
    case 'message':
      return { kind, workflowID: awaitedID, topic: awaitedName ?? '' };
    case 'event':
      return { kind, workflowID: awaitedID, key: awaitedName ?? '' };
    case 'outcome':
      return { kind, workflowID: awaitedID };
  }
}

/** The keys of the awaited rows that are there. A workflow that was deleted will have no outcome: it counts as ended. */
export async function findAwaited(
  reader: Pick<Reader, 'read'>,
  awaited: readonly AwaitedRow[],
): Promise<ReadonlySet<string>> {
  const messages = awaited.filter((one) => one.kind === 'message');
  const events = awaited.filter((one) => one.kind === 'event');
  const outcomes = awaited.filter((one) => one.kind === 'outcome');
  const foundMessages = messages.length === 0 ? [] : await findOldestMessages(reader, messages);
  const foundEvents = events.length === 0 ? [] : await findEvents(reader, events);
  const outcomeIDs = outcomes.map(({ workflowID }) => workflowID);
  const active = outcomes.length === 0 ? new Set<string>() : await findActive(reader, outcomeIDs);
  const there = [
    ...messages.filter((_, index) => foundMessages[index] !== undefined),
    ...events.filter((_, index) => foundEvents[index] !== undefined),
    ...outcomes.filter(({ workflowID }) => !active.has(workflowID)),
  ];
  return new Set(there.map(waitKey));
}

/** Whether workflows are parked until a row is there. */
export async function hasParkedWaits(database: Reader): Promise<boolean> {
  return (await database.read(sql`SELECT 1 FROM ${parkedWaits} LIMIT 1`)).length > 0;
}

/** What a parked workflow waits for. */
export interface ParkedWorkflow {
  /** When it continues at the latest. */
  readonly dueAt: number;
  /** Empty for a time alone. */
  readonly awaited: readonly AwaitedRow[];
  /** The step whose next attempt it waits for. */
  readonly retry?: { readonly stepID: number; readonly failedAttempts: number };
}

/** Those of the workflows that are parked, each with up to `max` of the rows that it waits for. */
export async function findParked(
  database: Reader,
  workflowIDs: readonly string[],
  max: number,
): Promise<Map<string, ParkedWorkflow>> {
  // Uses idx_parked_waits_workflow. One statement: a workflow that is woken loses its waits.
  const found = await database.read(sql`
    SELECT k.*
    FROM (
      SELECT w.workflow_uuid AS parked_id, w.delay_until_epoch_ms AS due_at, a.function_id, a.attempts,
        ${waitColumns.select('p')}, ROW_NUMBER() OVER (PARTITION BY w.workflow_uuid ORDER BY p.wait_key) AS n
      FROM ${workflows} AS w
      LEFT JOIN ${parkedWaits} AS p ON p.workflow_uuid = w.workflow_uuid
      LEFT JOIN ${table('step_attempts')} AS a
        ON a.workflow_uuid = w.workflow_uuid AND a.retry_at_epoch_ms = w.delay_until_epoch_ms
      WHERE w.workflow_uuid ${oneOf(workflowIDs)} AND ${isParked('w')}) AS k
    WHERE k.n <= ${max}
    ORDER BY k.parked_id, k.n`);
  const parked = new Map<string, ParkedWorkflow>();
  for (const row of found) {
    const id = row['parked_id'] as string;
    const isWaiting = row['wait_key'] !== null;
    const awaited = isWaiting ? [toAwaited(waitColumns.toRecord(row))] : [];
    const before = parked.get(id);
    if (before) parked.set(id, { ...before, awaited: [...before.awaited, ...awaited] });
    else parked.set(id, { dueAt: Number(row['due_at']), awaited, ...retryOf(row) });
  }
  return parked;
}

function retryOf(row: Row): Pick<ParkedWorkflow, 'retry'> {
  const stepID = row['function_id'] as number | null;
  return stepID === null ? {} : { retry: { stepID, failedAttempts: Number(row['attempts']) } };
}

/** Some of the waits, in the order of their keys: those after the given one. */
export async function listParkedWaits(
  database: Reader,
  after: ParkedWait | undefined,
  limit: number,
): Promise<ParkedWait[]> {
  // Uses the primary key.
  const found = await database.read(sql`
    SELECT ${waitColumns.select('p')}
    FROM ${parkedWaits} AS p
    WHERE (p.wait_key, p.workflow_uuid) > (${after?.key ?? ''}, ${after?.parkedID ?? ''})
    ORDER BY p.wait_key, p.workflow_uuid
    LIMIT ${limit}`);
  return found.map((row) => waitColumns.toRecord(row));
}

/** Those of the waits for which something has come although their workflows are parked. */
export async function findMissed(database: Reader, waits: readonly ParkedWait[]): Promise<ParkedWait[]> {
  const there = await findAwaited(database, waits.map(toAwaited));
  return waits.filter(({ key }) => there.has(key));
}

/** Wakes the workflows that are still parked with these waits, as the triggers do. */
export async function wakeParked(database: Database, waits: readonly ParkedWait[]): Promise<Ready[]> {
  const woken = await database.run(sql`
    WITH picked AS MATERIALIZED (
      SELECT w.workflow_uuid AS id
      FROM ${workflows} AS w
      WHERE w.workflow_uuid IN (
        SELECT p.workflow_uuid
        FROM ${parkedWaits} AS p
        WHERE p.wait_key ${oneOf(waits.map(({ key }) => key))})
      ${lock('skip', 'w')}
    )
    UPDATE ${workflows}
    SET status = 'ENQUEUED', updated_at = ${nowMs}
    FROM picked
    WHERE workflow_uuid = picked.id AND ${isParked()}
    RETURNING queue_name, queue_partition_key`);
  return woken.map(toReady);
}
