// Keeps partitions in advance of the rows to come.
import { dropOldCheck } from './in-place.js';
import { defaultOf, everyOf, lackingPartitions } from './lacking-partitions.js';
import { createPartition, type LivePartitions, readPartitions } from './partitions.js';
import type { PartitionSession } from './session.js';
import type { TimedTable } from './timed-table.js';

const AHEAD = { month: 12, day: 30 } as const;

/** Creates the partitions that are missing, and returns their names. */
export async function keepAhead(session: PartitionSession, table: TimedTable): Promise<string[]> {
  const live = await readPartitions(session, table);
  if (!live) return [];
  if (!live.isPartitioned) {
    await dropOldCheck(session, table, live.nowMs);
    return [];
  }
  const every = everyOf(live);
  const ahead = { every, ahead: AHEAD[every], sinceMs: uncoveredSince(live) };
  const create = await lackingPartitions(session, table, { live, ...ahead });
  const resolved = { ...table, schema: live.schema };
  for (const partition of create) await createPartition(session, resolved, { partition, standard: defaultOf(live) });
  return create.map(({ tableName }) => tableName);
}

/** Older rows of the default partition belong to periods whose partitions were dropped. */
function uncoveredSince({ partitions, nowMs }: LivePartitions): number {
  const ends = partitions.filter(({ isDefault }) => !isDefault).map(({ toMs }) => toMs);
  return Math.min(Math.max(...ends, 0), nowMs);
}
