// Whether there are partitions for the dead letters of now and of the next period.
import type { Transaction } from '../database.js';
import { qualifiedName } from '../schema/ddl.js';
import type { TableDeclaration } from '../schema/tables.js';
import type { Finding } from '../validate/finding.js';
import { partitionText, readPartitions } from './partitions.js';
import { periodOf } from './periods.js';
import { newPartitions } from './rotation.js';

/** A partition that holds more is one of months. */
const DAYS_MAX_MS = 7 * 86_400_000;

/** With no partition for now, dead letters cannot be written, and their messages come back again and again. */
export async function coverageOf(tx: Transaction, table: TableDeclaration): Promise<Finding[]> {
  const live = await readPartitions(tx, table);
  if (!live) return [];
  const ranges = live.partitions.filter(({ isDefault }) => !isDefault);
  const current = ranges.find(({ fromMs, toMs }) => fromMs <= live.nowMs && live.nowMs < toMs);
  const every = current && current.toMs - current.fromMs <= DAYS_MAX_MS ? 'day' : 'month';
  const nextMs = current?.toMs ?? periodOf(live.nowMs, every).toMs;
  const hasNext = ranges.some(({ fromMs, toMs }) => fromMs <= nextMs && nextMs < toMs);
  const hasDefault = ranges.length < live.partitions.length;
  const missing = [
    ...(current ? [] : [{ at: live.nowMs, severity: 'error' } as const]),
    // The last partition may have no end.
    ...(hasNext || nextMs === Infinity ? [] : [{ at: nextMs, severity: 'warning' } as const]),
  ];
  return missing.flatMap(({ at, severity }) =>
    newPartitions(table, live, [periodOf(at, every)])
      .filter(({ toMs }) => toMs > at)
      .map((partition) => ({
        code: 'missing_partition' as const,
        severity: hasDefault ? ('warning' as const) : severity,
        object: qualifiedName(table),
        expected: `a partition for ${new Date(partition.fromMs).toISOString()}`,
        actual: hasDefault ? 'the default partition' : 'none',
        fixSql: partitionText(table, partition),
      })),
  );
}
