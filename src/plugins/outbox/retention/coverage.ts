// Whether there are partitions for the dead letters of now and of the next period.
import { missingPartitions } from '../../../database/partitions/lacking-partitions.js';
import { partitionText, readPartitions } from '../../../database/partitions/partitions.js';
import type { Transaction } from '../database.js';
import { qualifiedName } from '../schema/ddl.js';
import type { TableDeclaration } from '../schema/tables.js';
import type { Finding } from '../validate/finding.js';
import { lettersOf } from './rotation.js';

/** With no partition for now, dead letters cannot be written, and their messages come back again and again. */
export async function coverageOf(tx: Transaction, table: TableDeclaration): Promise<Finding[]> {
  const letters = lettersOf(table);
  const live = await readPartitions(tx, letters);
  if (!live) return [];
  return missingPartitions(letters, live).map(({ isNow, hasDefault, ...partition }) => ({
    code: 'missing_partition' as const,
    severity: isNow && !hasDefault ? ('error' as const) : ('warning' as const),
    object: qualifiedName(table),
    expected: `a partition for ${new Date(partition.fromMs).toISOString()}`,
    actual: hasDefault ? 'the default partition' : 'none',
    fixSql: partitionText(letters, partition),
  }));
}
