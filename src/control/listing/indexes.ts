// Indexes that an application has if it wants them.
import { InvalidQueryError } from '../../model/errors/errors.js';
import { indexName, OPTIONAL_INDEXES, type OptionalIndex } from '../../model/indexes.js';
import { createIndex, dropIndex, findIndexes } from '../../store/listing/indexes.js';
import type { Operator } from '../operator.js';

export type { OptionalIndex };

export interface OptionalIndexInfo {
  /** The filter that it makes fast. */
  readonly index: OptionalIndex;
  readonly isThere: boolean;
}

export async function listOptionalIndexes(operator: Operator): Promise<OptionalIndexInfo[]> {
  const existing = await operator.retrying(() => findIndexes(operator.database));
  return (Object.keys(OPTIONAL_INDEXES) as OptionalIndex[]).map((index) => ({
    index,
    isThere: existing.has(indexName(index)) || (index === 'workflow_id_prefix' && isKeyEnough(operator)),
  }));
}

/** In SQLite texts are compared byte by byte, so that the index of the key finds prefixes. */
function isKeyEnough({ database }: Operator): boolean {
  return database.dialect.name === 'sqlite';
}

/** Builds the index, if it is not there. On Postgres work goes on meanwhile; on SQLite writers wait. */
export async function createOptionalIndex(operator: Operator, index: OptionalIndex): Promise<void> {
  checkIndex(index);
  if (index === 'workflow_id_prefix' && isKeyEnough(operator)) return;
  await operator.retrying(() => createIndex(operator.database, index));
}

export async function dropOptionalIndex(operator: Operator, index: OptionalIndex): Promise<void> {
  checkIndex(index);
  await operator.retrying(() => dropIndex(operator.database, index));
}

function checkIndex(index: unknown): void {
  if (typeof index === 'string' && Object.hasOwn(OPTIONAL_INDEXES, index)) return;
  const known = Object.keys(OPTIONAL_INDEXES).join(', ');
  throw new InvalidQueryError(`There is no optional index ${JSON.stringify(index)}. There is: ${known}.`);
}
