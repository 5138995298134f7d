// Converts a table of dead letters to one with partitions. Those that are too old to keep are deleted instead of moved.
import { PartitioningError } from '../../../kernel/errors/errors.js';
import { moveOldRows, oldOf, replaceTable, tableExists } from '../../../database/partitions/conversion.js';
import { newPartitions, periodsIn } from '../../../database/partitions/lacking-partitions.js';
import { readPartitions } from '../../../database/partitions/partitions.js';
import { periodsFrom } from '../../../database/partitions/periods.js';
import { qualifiedName } from '../schema/ddl.js';
import type { DlqTable } from '../schema/tables.js';
import { deleteBefore } from './deletion.js';
import type { RetentionSettings } from './options.js';
import { lettersOf } from './rotation.js';
import type { Session } from './session.js';

export interface Converted {
  /** False if the table had partitions already. */
  readonly converted: boolean;
  readonly moved: number;
  /** Rows that were too old to keep. */
  readonly deleted: number;
}

export async function convert(session: Session, dlq: DlqTable, settings: RetentionSettings): Promise<Converted> {
  const live = await readPartitions(session, lettersOf(dlq));
  if (!live) throw new PartitioningError(`There is no table ${qualifiedName(dlq)} to convert.`);
  const { every, ahead } = settings;
  const table = { ...lettersOf(dlq), schema: live.schema };
  const cutoffMs = settings.cutoffMs(live.nowMs);
  if (!live.isPartitioned) {
    const held = await periodsIn(session, table, { every, sinceMs: cutoffMs });
    const wanted = [...periodsFrom(live.nowMs, every, ahead), ...held];
    const periods = new Map(wanted.map((period) => [period.suffix, period]));
    await replaceTable(session, table, newPartitions(table, live, [...periods.values()]));
  }
  if (!(await tableExists(session, oldOf(table)))) return { converted: false, moved: 0, deleted: 0 };
  const { archive } = settings;
  const old = oldOf({ ...dlq, schema: live.schema });
  const deleted = await deleteBefore(session.transact, { table: old, beforeMs: cutoffMs, archive });
  return { converted: !live.isPartitioned, moved: await moveOldRows(session, table), deleted };
}
