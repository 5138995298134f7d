// Partitions of the journal: converts it on request, and keeps partitions in advance.
import { sleep } from '../../kernel/base/clock.js';
import { DatabaseAccessError, DatabaseStatementError } from '../../kernel/errors/errors.js';
import { boolean, integer, oneOf, optional, record } from '../../kernel/check/validation.js';
import { prunePartitions } from './partition-pruning.sql.js';
import type { PruneLimits } from './pruning.sql.js';
import { keepPartitions, partitionTable } from '../retention/partitioned-tables.sql.js';
import type { Operator } from '../../operator/operator.js';

export interface PartitionHistoryOptions {
  /** How much a partition holds. Default: a month. */
  readonly every?: 'month' | 'day';
  /** How many partitions exist in advance. Default: 12 months, or 30 days. */
  readonly ahead?: number;
  /** Whether the index of archived workflows is partitioned as well, by the time at which they were archived. Default: false. */
  readonly archiveIndex?: boolean;
}

export interface PartitionedHistory {
  /** False if all tables had partitions already. */
  readonly converted: boolean;
  /** Partitions that were missing. */
  readonly created: readonly string[];
}

const AHEAD_MAX = 1000;
const OPTIONS = record({
  every: optional(oneOf(['month', 'day'])),
  ahead: optional(integer({ min: 1, max: AHEAD_MAX })),
  archiveIndex: optional(boolean),
});

/** A lock timeout, or a deadlock. */
const NOT_LOCKED = new Set(['55P03', '40P01']);
const ATTEMPTS = 30;
const PAUSE_MS = 500;

function isNotLocked(error: unknown): boolean {
  return error instanceof DatabaseStatementError && NOT_LOCKED.has(error.sqlState ?? '');
}

/** Partitions the journal by time, while workflows run. Postgres only; as the owner of the tables. */
export async function partitionHistory(
  { database, clock }: Operator,
  options: PartitionHistoryOptions = {},
): Promise<PartitionedHistory> {
  OPTIONS.read(options, 'options');
  const { every = 'month' } = options;
  const { ahead = every === 'month' ? 12 : 30 } = options;
  const patiently = async <T>(attempt: () => Promise<T>): Promise<T> => {
    for (let attempts = 1; ; attempts += 1) {
      try {
        return await attempt();
      } catch (error) {
        if (attempts === ATTEMPTS || !isNotLocked(error)) throw error;
        await sleep(clock, PAUSE_MS);
      }
    }
  };
  const names = ['journal', ...(options.archiveIndex === true ? ['archived_workflows' as const] : [])] as const;
  let converted = false;
  for (const name of names)
    converted = (await partitionTable(database, name, { every, ahead, patiently })) || converted;
  return { converted, created: await keepPartitions(database) };
}

/** Prunes old partitions as a whole, where that is possible. What it leaves is pruned row by row. */
export async function prunePartitionsIfFree(
  { database, logger }: Pick<Operator, 'database' | 'logger'>,
  limits: PruneLimits,
): Promise<number> {
  try {
    return await prunePartitions(database, limits);
  } catch (error) {
    // A long transaction is in the way, or the role does not own the tables.
    if (!isNotLocked(error) && !(error instanceof DatabaseAccessError)) throw error;
    logger.debug(`Old partitions of the journal were not replaced: ${String(error)}`);
    return 0;
  }
}
