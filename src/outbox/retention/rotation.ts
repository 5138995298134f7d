// Rotates the partitions of the dead letters: creates those of the periods to come, and drops all that are too old, however
// many of either have been missed.
import { InvalidOutboxError } from '../../model/errors/errors.js';
import { sql } from '../../sql/sql.js';
import { qualifiedName } from '../schema/ddl.js';
import type { DlqTable } from '../schema/tables.js';
import { atTime, milliseconds, tableToken, text } from '../tokens.js';
import { archiveAll, countBefore, deleteBefore } from './deletion.js';
import type { RetentionSettings } from './options.js';
import {
  createPartition,
  detachPartition,
  type LivePartitions,
  type NewPartition,
  type Partition,
} from './partitions.js';
import { type Every, type Period, periodOf, periodsFrom, uncovered } from './periods.js';
import type { Session } from './session.js';

export interface Rotation {
  readonly cutoffMs: number;
  readonly create: readonly NewPartition[];
  readonly drop: readonly Partition[];
  /** The default partition, if there is one. */
  readonly standard: Partition | undefined;
  /** Rows of the default partition that are too old. */
  readonly expiredInDefault: number;
}

const NAME_BYTES_MAX = 63;

export async function planRotation(
  session: Pick<Session, 'run'>,
  dlq: DlqTable,
  { live, settings }: { readonly live: LivePartitions; readonly settings: RetentionSettings },
): Promise<Rotation> {
  const { every, ahead } = settings;
  const cutoffMs = settings.cutoffMs(live.nowMs);
  const standard = live.partitions.find(({ isDefault }) => isDefault);
  const held = standard ? await periodsIn(session, { ...dlq, ...standard }, { every, sinceMs: cutoffMs }) : [];
  const [row] = standard ? await session.run(countBefore(standard, cutoffMs)) : [];
  const drop = live.partitions.filter(({ isDefault, toMs }) => !isDefault && toMs <= cutoffMs);
  const periods = new Map([...periodsFrom(live.nowMs, every, ahead), ...held].map((period) => [period.suffix, period]));
  const create = newPartitions(dlq, live, [...periods.values()]).filter(
    // Without rows, a part of a period that is over needs no partition.
    ({ fromMs, toMs }) => toMs > live.nowMs || held.some((period) => period.fromMs < toMs && fromMs < period.toMs),
  );
  return { cutoffMs, create, drop, standard, expiredInDefault: Number(row?.['count'] ?? 0) };
}

/** The periods of the rows of a table since a time. */
export async function periodsIn(
  session: Pick<Session, 'run'>,
  table: Parameters<typeof tableToken>[0],
  { every, sinceMs }: { readonly every: Every; readonly sinceMs: number },
): Promise<Period[]> {
  const begin = `(date_trunc('${every}', d.failed_at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')`;
  const rows = await session.run(sql`
    SELECT DISTINCT ${milliseconds(begin)} AS from_ms
    FROM ${tableToken(table)} AS d
    WHERE d.failed_at >= ${atTime(sinceMs)}`);
  return rows.map((row) => periodOf(Number(row['from_ms']), every));
}

/** The partitions that the periods lack. One that is covered in part, by partitions of another time zone, gets the rest. */
export function newPartitions(
  dlq: Pick<DlqTable, 'tableName'>,
  { partitions, schema }: Pick<LivePartitions, 'partitions' | 'schema'>,
  periods: readonly Period[],
): NewPartition[] {
  const taken = new Set(partitions.map(({ tableName }) => tableName));
  const ranges = partitions.filter(({ isDefault }) => !isDefault);
  const created: NewPartition[] = [];
  for (const period of periods) {
    for (const part of uncovered(period, ranges)) {
      const tableName = freeName(`${dlq.tableName}_${period.suffix}`, taken);
      taken.add(tableName);
      created.push({ ...part, tableName, schema });
    }
  }
  return created;
}

function freeName(name: string, taken: ReadonlySet<string>): string {
  let free = name;
  for (let n = 2; taken.has(free); n += 1) free = `${name}_${n}`;
  if (Buffer.byteLength(free) <= NAME_BYTES_MAX) return free;
  throw new InvalidOutboxError(`The partition would be named "${free}", which is longer than ${NAME_BYTES_MAX} bytes.`);
}

export interface Rotated {
  readonly created: readonly string[];
  readonly dropped: readonly string[];
  /** Rows that moved out of the default partition. */
  readonly moved: number;
  readonly deleted: number;
}

export async function rotate(
  session: Session,
  dlq: DlqTable,
  {
    live,
    rotation,
    settings,
  }: { readonly live: LivePartitions; readonly rotation: Rotation; readonly settings: RetentionSettings },
): Promise<Rotated> {
  const resolved = { ...dlq, schema: live.schema };
  const { archive } = settings;
  const { create, drop, standard, cutoffMs } = rotation;
  const isDropped = settings.drop === 'drop';
  let moved = 0;
  for (const partition of create) moved += await createPartition(session, resolved, { partition, standard });
  const deleted = standard ? await deleteBefore(session.transact, { table: standard, beforeMs: cutoffMs, archive }) : 0;
  if (isDropped) for (const table of live.leftOver) await session.exec(`DROP TABLE IF EXISTS ${qualifiedName(table)}`);
  await finalizeDetaching(session, resolved, live.partitions);
  for (const partition of drop) {
    // A partition in the middle of being detached is not part of the table any more, and was archived before.
    if (archive && !partition.isDetaching) await archiveAll(session.transact, partition, archive);
    await detachPartition(session, resolved, { partition, hasDefault: standard !== undefined, isDropped });
  }
  return {
    created: create.map(({ tableName }) => tableName),
    dropped: drop.map(({ tableName }) => tableName),
    moved,
    deleted,
  };
}

/** Postgres detaches one partition at a time, so one that was interrupted comes first. */
async function finalizeDetaching(session: Session, dlq: DlqTable, partitions: readonly Partition[]): Promise<void> {
  for (const partition of partitions) {
    if (!partition.isDetaching) continue;
    await session.exec(`ALTER TABLE ${qualifiedName(dlq)} DETACH PARTITION ${qualifiedName(partition)} FINALIZE`);
  }
}

/** Whether a table exists, for what a conversion leaves behind. */
export async function exists(session: Pick<Session, 'run'>, name: string): Promise<boolean> {
  const [row] = await session.run(sql`SELECT to_regclass(${text(name)}) IS NOT NULL AS found`);
  return row?.['found'] === true;
}
