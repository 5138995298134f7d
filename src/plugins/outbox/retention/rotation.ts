// Rotates the partitions of the dead letters: creates those of the periods to come, and drops all that are too old, however
// many of either have been missed.
import {
  createPartition,
  detachPartition,
  finalizeDetaching,
  type LivePartitions,
  type NewPartition,
  type Partition,
} from '../../../database/partitions/partitions.js';
import { defaultOf, lackingPartitions } from '../../../database/partitions/lacking-partitions.js';
import type { TimedTable } from '../../../database/partitions/timed-table.js';
import { qualifiedName } from '../schema/ddl.js';
import type { TableDeclaration } from '../schema/tables.js';
import { archiveAll, countBefore, deleteBefore } from './deletion.js';
import type { RetentionSettings } from './options.js';
import type { Session } from './session.js';

/** The dead letters as a table with partitions. */
export function lettersOf({ tableName, schema }: Pick<TableDeclaration, 'tableName' | 'schema'>): TimedTable {
  return { tableName, schema, column: 'failed_at', unit: 'timestamptz', key: ['id', 'failed_at'] };
}

export interface Rotation {
  readonly cutoffMs: number;
  readonly create: readonly NewPartition[];
  readonly drop: readonly Partition[];
  /** The default partition, if there is one. */
  readonly standard: Partition | undefined;
  /** Rows of the default partition that are too old. */
  readonly expiredInDefault: number;
}

interface Parts {
  readonly live: LivePartitions;
  readonly settings: RetentionSettings;
}

export async function planRotation(
  session: Pick<Session, 'run'>,
  dlq: TableDeclaration,
  { live, settings }: Parts,
): Promise<Rotation> {
  const { every, ahead } = settings;
  const cutoffMs = settings.cutoffMs(live.nowMs);
  const standard = defaultOf(live);
  const [row] = standard ? await session.run(countBefore(standard, cutoffMs)) : [];
  return {
    cutoffMs,
    create: await lackingPartitions(session, lettersOf(dlq), { live, every, ahead, sinceMs: cutoffMs }),
    drop: live.partitions.filter(({ isDefault, toMs }) => !isDefault && toMs <= cutoffMs),
    standard,
    expiredInDefault: Number(row?.['count'] ?? 0),
  };
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
  dlq: TableDeclaration,
  { live, rotation, settings }: Parts & { readonly rotation: Rotation },
): Promise<Rotated> {
  const table = { ...lettersOf(dlq), schema: live.schema };
  const { archive } = settings;
  const { create, drop, standard, cutoffMs } = rotation;
  const isDropped = settings.drop === 'drop';
  let moved = 0;
  for (const partition of create) moved += await createPartition(session, table, { partition, standard });
  const deleted = standard ? await deleteBefore(session.transact, { table: standard, beforeMs: cutoffMs, archive }) : 0;
  if (isDropped) {
    for (const leftOver of live.leftOver) await session.exec(`DROP TABLE IF EXISTS ${qualifiedName(leftOver)}`);
  }
  await finalizeDetaching(session, table, live.partitions);
  for (const partition of drop) {
    // A partition in the middle of being detached is not part of the table any more, and was archived before.
    if (archive && !partition.isDetaching) await archiveAll(session.transact, partition, archive);
    await detachPartition(session, table, { partition, hasDefault: standard !== undefined, isDropped });
  }
  return {
    created: create.map(({ tableName }) => tableName),
    dropped: drop.map(({ tableName }) => tableName),
    moved,
    deleted,
  };
}
