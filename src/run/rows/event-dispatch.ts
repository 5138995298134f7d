// The progress of an event receiver or decorated schedule: a value with a time or sequence number. An older one does not
// replace a newer one.
import { oneOf, sql, type Sql, table, type Token } from '../../kernel/sql/sql.js';
import type { Database, Row } from '../../database/database.js';

export interface EventDispatchState {
  readonly service: string;
  readonly workflowFnName: string;
  readonly key: string;
  readonly value?: string;
  readonly updateTime?: number;
  readonly updateSeq?: bigint;
}

const states = table('event_dispatch_kv');

/** True if the new state has an earlier time or smaller number than the stored one. */
const isStale: Sql = sql`(COALESCE(EXCLUDED.update_time < event_dispatch_kv.update_time, FALSE)
  OR COALESCE(EXCLUDED.update_seq < event_dispatch_kv.update_seq, FALSE))`;

const unconditionally = sql`TRUE`;

const INT64_MAX = 2n ** 63n - 1n;
const NUMERIC_DIGITS = 38;
/** Keeps SQLite from taking the digits for a number. */
const DIGITS_PREFIX = 'n';

/**
 * SQLite has no integers beyond 64 bits and would store a REAL, without the last digits. Such a number is stored as text of
 * fixed width, which sorts by value and after all numbers.
 */
function sequenceNumber(value: bigint | undefined): Token {
  const isWide = value !== undefined && value > INT64_MAX;
  const digits = value?.toString() ?? null;
  return {
    shape: `sequence:${isWide};`,
    write(out) {
      const isText = isWide && out.dialect.name === 'sqlite';
      out.text(isText ? '' : 'CAST(');
      out.placeholder();
      out.text(isText ? '' : ' AS NUMERIC)');
    },
    collect(values, { name }) {
      const isText = isWide && name === 'sqlite';
      values.push(isText ? DIGITS_PREFIX + (digits ?? '').padStart(NUMERIC_DIGITS, '0') : digits);
    },
  };
}

/** Stores the state unless a newer one is stored. Returns the stored state; nothing if the condition does not hold. */
export function upsertEventDispatchState(state: EventDispatchState, condition: Sql = unconditionally): Sql {
  const { service, workflowFnName, key, value, updateTime, updateSeq } = state;
  return sql`
    INSERT INTO ${states} (service_name, workflow_fn_name, key, value, update_time, update_seq)
    SELECT ${service}, ${workflowFnName}, ${key}, ${value},
      CAST(${updateTime?.toString()} AS NUMERIC), ${sequenceNumber(updateSeq)}
    WHERE ${condition}
    ON CONFLICT (service_name, workflow_fn_name, key) DO UPDATE
    SET value = CASE WHEN ${isStale} THEN event_dispatch_kv.value ELSE EXCLUDED.value END,
      update_time = CASE
        WHEN ${isStale} THEN event_dispatch_kv.update_time
        ELSE COALESCE(EXCLUDED.update_time, event_dispatch_kv.update_time) END,
      update_seq = CASE
        WHEN ${isStale} THEN event_dispatch_kv.update_seq
        ELSE COALESCE(EXCLUDED.update_seq, event_dispatch_kv.update_seq) END
    RETURNING service_name, workflow_fn_name, key, value, CAST(update_time AS TEXT) AS update_time,
      CAST(update_seq AS TEXT) AS update_seq`;
}

export async function findEventDispatchState(
  database: Database,
  { service, workflowFnName, key }: Pick<EventDispatchState, 'service' | 'workflowFnName' | 'key'>,
): Promise<EventDispatchState | undefined> {
  const [row] = await database.read(sql`
    SELECT e.service_name, e.workflow_fn_name, e.key, e.value, CAST(e.update_time AS TEXT) AS update_time,
      CAST(e.update_seq AS TEXT) AS update_seq
    FROM ${states} AS e
    WHERE e.service_name = ${service} AND e.workflow_fn_name = ${workflowFnName} AND e.key = ${key}`);
  return row && toEventDispatchState(row);
}

/** A position in the states of a service, the newest first. */
export type StatePosition = Pick<EventDispatchState, 'workflowFnName' | 'key'> & { readonly updateTime: number };

export interface StatePage {
  readonly service: string;
  /** Undefined: those of all functions. */
  readonly workflowFnName: string | undefined;
  /** Undefined: all keys. */
  readonly keys: readonly string[] | undefined;
  readonly after: StatePosition | undefined;
  readonly limit: number;
}

/** A page of the states of a service, the newest first. */
export async function pageEventDispatchStates(
  database: Database,
  { service, workflowFnName, keys, after, limit }: StatePage,
): Promise<EventDispatchState[]> {
  const ofFunction = workflowFnName === undefined ? unconditionally : sql`e.workflow_fn_name = ${workflowFnName}`;
  const withKey = keys === undefined ? unconditionally : sql`e.key ${oneOf(keys)}`;
  const found = await database.read(sql`
    SELECT e.service_name, e.workflow_fn_name, e.key, e.value, CAST(e.update_time AS TEXT) AS update_time,
      CAST(e.update_seq AS TEXT) AS update_seq
    FROM ${states} AS e
    WHERE e.service_name = ${service} AND ${ofFunction} AND ${withKey} AND ${after ? isAfter(after) : unconditionally}
    ORDER BY e.update_time DESC, e.workflow_fn_name, e.key
    LIMIT ${limit}`);
  return found.map(toEventDispatchState);
}

function isAfter({ updateTime, workflowFnName, key }: StatePosition): Sql {
  const time = sql`CAST(${updateTime.toString()} AS NUMERIC)`;
  return sql`(e.update_time < ${time} OR e.update_time = ${time} AND (
      e.workflow_fn_name > ${workflowFnName} OR e.workflow_fn_name = ${workflowFnName} AND e.key > ${key}))`;
}

/** Deletes states in one commit. */
export async function deleteEventDispatchStates(
  database: Database,
  names: readonly Pick<EventDispatchState, 'service' | 'workflowFnName' | 'key'>[],
): Promise<void> {
  await database.commit(names.map((name) => deletion(name)));
}

/** All states of a service for a function, by key. */
export async function listEventDispatchStates(
  database: Database,
  { service, workflowFnName }: Pick<EventDispatchState, 'service' | 'workflowFnName'>,
): Promise<EventDispatchState[]> {
  const found = await database.read(sql`
    SELECT e.service_name, e.workflow_fn_name, e.key, e.value, CAST(e.update_time AS TEXT) AS update_time,
      CAST(e.update_seq AS TEXT) AS update_seq
    FROM ${states} AS e
    WHERE e.service_name = ${service} AND e.workflow_fn_name = ${workflowFnName}
    ORDER BY e.key`);
  return found.map(toEventDispatchState);
}

export async function deleteEventDispatchState(
  database: Database,
  name: Pick<EventDispatchState, 'service' | 'workflowFnName' | 'key'>,
): Promise<void> {
  await database.run(deletion(name));
}

function deletion({
  service,
  workflowFnName,
  key,
}: Pick<EventDispatchState, 'service' | 'workflowFnName' | 'key'>): Sql {
  return sql`
    DELETE FROM ${states}
    WHERE service_name = ${service} AND workflow_fn_name = ${workflowFnName} AND key = ${key}`;
}

export function toEventDispatchState(row: Row): EventDispatchState {
  const time = row['update_time'] as string | null;
  const seq = row['update_seq'] as string | null;
  return {
    service: row['service_name'] as string,
    workflowFnName: row['workflow_fn_name'] as string,
    key: row['key'] as string,
    value: (row['value'] as string | null) ?? undefined,
    updateTime: time === null ? undefined : Number(time),
    updateSeq: seq === null ? undefined : BigInt(seq.replace(/^n|\..*$/g, '')),
  };
}
