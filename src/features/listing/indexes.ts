// Optional indexes, which an application builds on demand.
import { sleep } from '../../kernel/base/clock.js';
import { DatabaseStatementError } from '../../kernel/errors/errors.js';
import { indexName, OPTIONAL_INDEXES, type OptionalIndex } from './index-fields.js';
import { oneOf } from '../../kernel/check/validation.js';
import { createIndex, dropIndex, findIndexes } from './indexes.sql.js';
import { findFiltersWithRareValues } from './rare-values.sql.js';
import type { Operator } from '../../operator/operator.js';

export type { OptionalIndex };

/** How often to look whether another session still builds an index. */
const BUILDING_MS = 250;
const DEADLOCK = '40P01';

export interface OptionalIndexInfo {
  /** The filter that it speeds up. */
  readonly index: OptionalIndex;
  readonly isThere: boolean;
}

const indexCheck = oneOf(Object.keys(OPTIONAL_INDEXES));

export async function listOptionalIndexes(operator: Operator): Promise<OptionalIndexInfo[]> {
  const existing = await operator.retrying(() => findIndexes(operator.database));
  return (Object.keys(OPTIONAL_INDEXES) as OptionalIndex[]).map((index) => ({
    index,
    isThere: existing.has(indexName(index)) || (index === 'workflow_id_prefix' && isKeyEnough(operator)),
  }));
}

/** The indexes that do not exist and would help to list rare values of their filters. */
export async function adviseIndexes(operator: Operator): Promise<OptionalIndex[]> {
  const existing = await operator.retrying(() => findIndexes(operator.database));
  const filters = await operator.retrying(() => findFiltersWithRareValues(operator.database));
  return filters.filter((index) => !existing.has(indexName(index)));
}

/** SQLite compares text bytewise, so the primary key's index already serves prefix searches. */
function isKeyEnough({ database }: Operator): boolean {
  return database.dialect.name === 'sqlite';
}

/** Builds the index if it does not exist. Postgres builds it concurrently; on SQLite writers wait. */
export async function createOptionalIndex(operator: Operator, index: OptionalIndex): Promise<void> {
  indexCheck.read(index, 'index');
  if (index === 'workflow_id_prefix' && isKeyEnough(operator)) return;
  while (!(await operator.retrying(() => tryToCreate(operator, index)))) await sleep(operator.clock, BUILDING_MS);
}

/** False if another session is building one. */
async function tryToCreate({ database }: Operator, index: OptionalIndex): Promise<boolean> {
  try {
    return await createIndex(database, index);
  } catch (error) {
    // Both began at the same time. What is left of one that was ended is rebuilt.
    if (error instanceof DatabaseStatementError && error.sqlState === DEADLOCK) return false;
    throw error;
  }
}

export async function dropOptionalIndex(operator: Operator, index: OptionalIndex): Promise<void> {
  indexCheck.read(index, 'index');
  await operator.retrying(() => dropIndex(operator.database, index));
}
