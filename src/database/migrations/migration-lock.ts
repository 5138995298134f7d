// Lets one process migrate at a time, by a Postgres advisory lock. It avoids needless work and contention; the migrations do
// not depend on it. If the holder makes no progress (it crashed and the server has not noticed), waiters give up on this
// lock and take a second one. Servers without advisory locks are migrated without one.
import { type Clock, sleep } from '../../kernel/base/clock.js';
import type { DLogger } from '../../kernel/base/log.js';
import { DatabaseAccessError, DatabaseStatementError } from '../../kernel/errors/errors.js';
import { sql } from '../../kernel/sql/sql.js';
import type { Connection } from '../database.js';

export interface MigrationLockOptions {
  readonly logger: DLogger;
  readonly clock: Clock;
  readonly lockPollMs: number;
  /** How long to wait for a holder that makes no progress. */
  readonly lockTimeoutMs: number;
  /** Called while another process holds the lock. */
  observe(): Promise<Observation>;
}

/** All migrations are done, or there was progress since the last call, or there was none. */
export type Observation = 'done' | 'moving' | 'still';

/** The lock that all languages use, and the one for processes that gave up on it. */
const LOCK_NUMBERS = [1234567890, 1234567891];

/** Runs `body` while holding a lock, or without one if none is available or needed. */
export async function withMigrationLock<T>(
  connection: Connection,
  options: MigrationLockOptions,
  body: () => Promise<T>,
): Promise<T> {
  const held = await acquireAny(connection, options);
  try {
    return await body();
  } finally {
    if (held !== undefined) await release(connection, held);
  }
}

async function acquireAny(connection: Connection, options: MigrationLockOptions): Promise<number | undefined> {
  try {
    for (const lock of LOCK_NUMBERS) {
      const outcome = await acquire(connection, lock, options);
      if (outcome === 'held') return lock;
      if (outcome === 'not needed') return undefined;
      options.logger.warn(
        `Another process holds migration lock ${lock} and has made no progress for ${options.lockTimeoutMs} ms; ` +
          'migrating without that lock.',
      );
    }
  } catch (error) {
    if (!(error instanceof DatabaseStatementError || error instanceof DatabaseAccessError)) throw error;
    options.logger.warn(`The server provides no migration lock, migrating without one: ${error.message}`);
  }
  return undefined;
}

async function acquire(
  connection: Connection,
  lock: number,
  options: MigrationLockOptions,
): Promise<'held' | 'not needed' | 'given up'> {
  const { clock, lockPollMs, lockTimeoutMs } = options;
  let giveUpAt = clock.monotonic() + lockTimeoutMs;
  for (;;) {
    const [row] = await connection.run(sql`SELECT pg_try_advisory_lock(${lock}) AS is_held`);
    if (row?.['is_held'] === true) return 'held';
    const observation = await options.observe();
    if (observation === 'done') return 'not needed';
    if (observation === 'moving') giveUpAt = clock.monotonic() + lockTimeoutMs;
    if (clock.monotonic() >= giveUpAt) return 'given up';
    await sleep(clock, lockPollMs);
  }
}

async function release(connection: Connection, lock: number): Promise<void> {
  try {
    await connection.run(sql`SELECT pg_advisory_unlock(${lock})`);
  } catch {
    // The connection is lost, and the lock with it. The cause has already been reported.
  }
}
