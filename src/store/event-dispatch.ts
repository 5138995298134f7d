// How far an event receiver or a decorated schedule has come: a value with a time or a sequence number, of which only a
// later one replaces an earlier one.
import { sql, type Sql, table } from '../sql/sql.js';
import type { Database, Row } from './database.js';

export interface EventDispatchState {
  readonly service: string;
  readonly workflowFnName: string;
  readonly key: string;
  readonly value?: string;
  readonly updateTime?: number;
  readonly updateSeq?: bigint;
}

const states = table('event_dispatch_kv');

/** Stores the state unless a later one is there. Returns what is stored then. */
export function upsertEventDispatchState(state: EventDispatchState): Sql {
  const { service, workflowFnName, key, value, updateTime, updateSeq } = state;
  return sql`
    INSERT INTO ${states} (service_name, workflow_fn_name, key, value, update_time, update_seq)
    VALUES (${service}, ${workflowFnName}, ${key}, ${value},
      CAST(${updateTime?.toString()} AS NUMERIC), CAST(${updateSeq?.toString()} AS NUMERIC))
    ON CONFLICT (service_name, workflow_fn_name, key) DO UPDATE
    SET value = CASE
          WHEN EXCLUDED.update_time > event_dispatch_kv.update_time THEN EXCLUDED.value
          WHEN EXCLUDED.update_seq > event_dispatch_kv.update_seq THEN EXCLUDED.value
          WHEN event_dispatch_kv.update_time IS NULL AND event_dispatch_kv.update_seq IS NULL THEN EXCLUDED.value
          ELSE event_dispatch_kv.value END,
      update_time = ${greater('update_time')},
      update_seq = ${greater('update_seq')}
    RETURNING service_name, workflow_fn_name, key, value, CAST(update_time AS TEXT) AS update_time,
      CAST(update_seq AS TEXT) AS update_seq`;
}

/** The greater of what is stored and what is new; one that is missing does not count. */
function greater(column: 'update_time' | 'update_seq'): Sql {
  return column === 'update_time'
    ? sql`CASE WHEN EXCLUDED.update_time > event_dispatch_kv.update_time THEN EXCLUDED.update_time
        ELSE COALESCE(event_dispatch_kv.update_time, EXCLUDED.update_time) END`
    : sql`CASE WHEN EXCLUDED.update_seq > event_dispatch_kv.update_seq THEN EXCLUDED.update_seq
        ELSE COALESCE(event_dispatch_kv.update_seq, EXCLUDED.update_seq) END`;
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

export function toEventDispatchState(row: Row): EventDispatchState {
  const time = row['update_time'] as string | null;
  const seq = row['update_seq'] as string | null;
  return {
    service: row['service_name'] as string,
    workflowFnName: row['workflow_fn_name'] as string,
    key: row['key'] as string,
    value: (row['value'] as string | null) ?? undefined,
    updateTime: time === null ? undefined : Number(time),
    updateSeq: seq === null ? undefined : BigInt(seq.replace(/\..*$/, '')),
  };
}
