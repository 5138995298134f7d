// Which partitions a table lacks: for the periods to come, and for rows that a default partition holds.
import { PartitioningError } from '../../kernel/errors/errors.js';
import { sql } from '../../kernel/sql/sql.js';
import type { LivePartitions, NewPartition, Partition } from './partitions.js';
import { type Every, type Period, periodOf, periodsFrom, uncovered } from './periods.js';
import type { PartitionTransaction } from './session.js';
import { nameOf, type TableName, type TimedTable, timeText, verbatim } from './timed-table.js';

const NAME_BYTES_MAX = 63;

export interface Ahead {
  readonly every: Every;
  /** How many periods after the present one. */
  readonly ahead: number;
  /** Rows of the default partition that are older need no partition. */
  readonly sinceMs: number;
}

/** The partitions to create now. */
export async function lackingPartitions(
  session: Pick<PartitionTransaction, 'run'>,
  table: TimedTable,
  { live, every, ahead, sinceMs }: Ahead & { readonly live: LivePartitions },
): Promise<NewPartition[]> {
  const standard = defaultOf(live);
  const held = standard ? await periodsIn(session, { ...table, ...standard }, { every, sinceMs }) : [];
  const periods = new Map([...periodsFrom(live.nowMs, every, ahead), ...held].map((period) => [period.suffix, period]));
  return newPartitions(table, live, [...periods.values()]).filter(
    // Without rows, a part of a period that is over needs no partition.
    ({ fromMs, toMs }) => toMs > live.nowMs || held.some((period) => period.fromMs < toMs && fromMs < period.toMs),
  );
}

export function defaultOf({ partitions }: Pick<LivePartitions, 'partitions'>): Partition | undefined {
  return partitions.find(({ isDefault }) => isDefault);
}

/** The periods of the rows of a table since a time. */
export async function periodsIn(
  session: Pick<PartitionTransaction, 'run'>,
  table: TimedTable,
  { every, sinceMs }: { readonly every: Every; readonly sinceMs: number },
): Promise<Period[]> {
  const column = `d."${table.column}"`;
  const time = table.unit === 'timestamptz' ? column : `to_timestamp(${column} / 1000.0)`;
  const begin = `(date_trunc('${every}', ${time} AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')`;
  const rows = await session.run(sql`
    SELECT DISTINCT ${verbatim(`(EXTRACT(EPOCH FROM ${begin}) * 1000)::float8`)} AS from_ms
    FROM ${verbatim(nameOf(table))} AS d
    WHERE ${verbatim(column)} >= ${verbatim(timeText(table, sinceMs))}`);
  return rows.map((row) => periodOf(Number(row['from_ms']), every));
}

/** The partitions that the periods lack. One that is covered in part, by partitions of another time zone, gets the rest. */
export function newPartitions(
  table: Pick<TableName, 'tableName'>,
  { partitions, schema }: Pick<LivePartitions, 'partitions' | 'schema'>,
  periods: readonly Period[],
): NewPartition[] {
  const taken = new Set(partitions.map(({ tableName }) => tableName));
  const ranges = partitions.filter(({ isDefault }) => !isDefault);
  const created: NewPartition[] = [];
  for (const period of periods) {
    for (const part of uncovered(period, ranges)) {
      const tableName = freeName(`${table.tableName}_${period.suffix}`, taken);
      taken.add(tableName);
      created.push({ ...part, tableName, schema });
    }
  }
  return created;
}

export function freeName(name: string, taken: ReadonlySet<string>): string {
  let free = name;
  for (let n = 2; taken.has(free); n += 1) free = `${name}_${n}`;
  if (Buffer.byteLength(free) <= NAME_BYTES_MAX) return free;
  throw new PartitioningError(`The partition would be named "${free}", which is longer than ${NAME_BYTES_MAX} bytes.`);
}

/** A partition that holds more is one of months. */
const DAYS_MAX_MS = 7 * 86_400_000;

/** How long the partition of now is, or else the last one before it. */
export function everyOf({ partitions, nowMs }: Pick<LivePartitions, 'partitions' | 'nowMs'>): Every {
  const ranges = partitions.filter(({ isDefault, fromMs, toMs }) => !isDefault && toMs - fromMs < Infinity);
  const current = ranges.find(({ fromMs, toMs }) => fromMs <= nowMs && nowMs < toMs) ?? ranges.at(-1);
  return current && current.toMs - current.fromMs <= DAYS_MAX_MS ? 'day' : 'month';
}

export interface MissingPartition extends NewPartition {
  readonly isNow: boolean;
  readonly hasDefault: boolean;
}

/** What is missing of the partitions for now and for the next period. */
export function missingPartitions(table: TimedTable, live: LivePartitions): MissingPartition[] {
  const ranges = live.partitions.filter(({ isDefault }) => !isDefault);
  const current = ranges.find(({ fromMs, toMs }) => fromMs <= live.nowMs && live.nowMs < toMs);
  const every = everyOf(live);
  const nextMs = current?.toMs ?? periodOf(live.nowMs, every).toMs;
  const hasNext = ranges.some(({ fromMs, toMs }) => fromMs <= nextMs && nextMs < toMs);
  const hasDefault = ranges.length < live.partitions.length;
  const missing = [
    ...(current ? [] : [{ at: live.nowMs, isNow: true }]),
    // The last partition may have no end.
    ...(hasNext || nextMs === Infinity ? [] : [{ at: nextMs, isNow: false }]),
  ];
  return missing.flatMap(({ at, isNow }) =>
    newPartitions(table, live, [periodOf(at, every)])
      .filter(({ toMs }) => toMs > at)
      .map((partition) => ({ ...partition, isNow, hasDefault })),
  );
}
