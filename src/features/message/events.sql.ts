// Rows of `workflow_events` and `workflow_events_history`. An event has the latest value of its key; the history has the
// value of every step that set one.
import { rows, type Sql, sql, table } from '../../kernel/sql/sql.js';
import { TableColumns } from '../../database/columns.js';
import type { Database, Reader } from '../../database/database.js';
import type { Owned } from '../../run/rows/lifecycle.js';
import { isOwned } from '../../run/rows/workflows.js';

/** An event set by a run. */
export interface NewEvent extends Owned {
  readonly stepID: number;
  readonly key: string;
  readonly text: string;
  readonly serialization: string;
}

const newEventColumns = new TableColumns<NewEvent>([
  ['workflowID', 'workflow_uuid', 'text'],
  ['owner', 'owner_xid', 'text'],
  ['stepID', 'function_id', 'int'],
  ['key', 'key', 'text'],
  ['text', 'value', 'text'],
  ['serialization', 'serialization', 'text'],
]);

const events = table('workflow_events');
const history = table('workflow_events_history');

/** Sets the events of runs that own their workflows. Of several values for a key, the last wins. */
export function upsertEvents(given: readonly NewEvent[]): Sql {
  const last = new Map(given.map((event) => [JSON.stringify([event.owner, event.workflowID, event.key]), event]));
  return sql`
    INSERT INTO ${events} (workflow_uuid, key, value, serialization)
    SELECT r.workflow_uuid, r.key, r.value, r.serialization
    FROM ${newEventRows([...last.values()])}
    WHERE ${isOwned}
    ON CONFLICT (workflow_uuid, key) DO UPDATE SET value = EXCLUDED.value, serialization = EXCLUDED.serialization`;
}

/** Adds the same values to the history, by step. */
export function upsertEventHistory(given: readonly NewEvent[]): Sql {
  return sql`
    INSERT INTO ${history} (workflow_uuid, function_id, key, value, serialization)
    SELECT r.workflow_uuid, r.function_id, r.key, r.value, r.serialization
    FROM ${newEventRows(given)}
    WHERE ${isOwned}
    ON CONFLICT (workflow_uuid, function_id, key)
    DO UPDATE SET value = EXCLUDED.value, serialization = EXCLUDED.serialization`;
}

function newEventRows(given: readonly NewEvent[]) {
  const data = given.map((event) => newEventColumns.toValues(event));
  return rows('r', newEventColumns.columns, data);
}

/** The key of an event or stream. */
export interface EventKey {
  readonly workflowID: string;
  readonly key: string;
}

/** The key as sent in notifications. */
export function eventKey({ workflowID, key }: EventKey): string {
  return `${workflowID}::${key}`;
}

export interface StoredEvent {
  readonly key: string;
  readonly text: string;
  readonly serialization: string | null;
}

const storedEventColumns = new TableColumns<StoredEvent>([
  ['key', 'key', 'text'],
  ['text', 'value', 'text'],
  ['serialization', 'serialization', 'text'],
]);

const keyColumns = [
  { name: 'ordinal', type: 'int' },
  { name: 'workflow_id', type: 'text' },
  { name: 'wanted_key', type: 'text' },
] as const;

const selectedEvent = storedEventColumns.select('e');

/** The events of the keys, in the same order. */
export async function findEvents(database: Reader, keys: readonly EventKey[]): Promise<(StoredEvent | undefined)[]> {
  const data = keys.map(({ workflowID, key }, ordinal) => [ordinal, workflowID, key]);
  const found = await database.read(sql`
    SELECT r.ordinal, ${selectedEvent}
    FROM ${rows('r', keyColumns, data)}
    JOIN ${events} AS e ON e.workflow_uuid = r.workflow_id AND e.key = r.wanted_key`);
  const byOrdinal = new Map(found.map((row) => [row['ordinal'], storedEventColumns.toRecord(row)]));
  return keys.map((_, ordinal) => byOrdinal.get(ordinal));
}

/** All events of the workflow, by key. */
export async function listEvents(database: Database, workflowID: string): Promise<StoredEvent[]> {
  const found = await database.read(sql`
    SELECT ${selectedEvent}
    FROM ${events} AS e
    WHERE e.workflow_uuid = ${workflowID}
    ORDER BY e.key`);
  return found.map((row) => storedEventColumns.toRecord(row));
}
