// Serialises the claims of a queue whose limits apply across processes, by an advisory lock of the queue. A server without
// advisory locks has one row for all queues instead: in-memory queues have no row of their own.
import { advisoryLock, lock, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { CommitOptions, Database, Row } from '../../database/database.js';
import { lacksAdvisoryLocks } from '../../database/postgres/postgres-errors.js';
import { LOCK_TIMEOUT_MS, markClaims } from './foreign-claims.sql.js';
import type { Scope } from './claim-limits.sql.js';

/** Waits for claims in flight on a queue with limits, and blocks later ones until this commit. */
export function lockQueueClaims(queueName: string): Sql {
  return sql`SELECT ${advisoryLock(`queue.${queueName}`)} AS locked`;
}

/** Waits for a pause of the queue in flight, and makes later ones wait for this commit. Refills do not wait for each other. */
export function lockRefill(queueName: string): Sql {
  return sql`SELECT ${advisoryLock(refillsOf(queueName), { isShared: true })} AS refill_locked`;
}

/** Waits for claims and refills in flight on a queue, and blocks later ones until this commit. */
export function lockAllClaims(queueName: string): Sql {
  return sql`
    SELECT ${advisoryLock(`queue.${queueName}`)} AS locked, ${advisoryLock(refillsOf(queueName))} AS refills_locked`;
}

const refillsOf = (queueName: string): string => `refills.${queueName}`;

/** The claims of one commit: all of the same queue. */
interface CommittedClaims {
  readonly owner: string;
  readonly scope: Scope;
  readonly statements: readonly Sql[];
}

/** Commits the statements of claims under the lock of their queue. */
export async function commitClaims(
  database: Database,
  { owner, scope, statements }: CommittedClaims,
): Promise<Row[][]> {
  const isPostgres = database.dialect.name === 'postgres';
  const marked = isPostgres ? [...statements, markClaims(owner, scope)] : statements;
  // Other programs may hold the lock for as long as they please.
  const options = isPostgres ? { lockTimeoutMs: LOCK_TIMEOUT_MS } : {};
  return commitLocked(database, scope.queueName, { statements: marked, ...options });
}

interface LockedCommit extends CommitOptions {
  readonly statements: readonly Sql[];
  /** Default: that of claims. */
  readonly locks?: Sql;
}

/** Commits the statements under the lock of the queue's claims. */
export async function commitLocked(
  database: Database,
  queueName: string,
  { statements, locks = lockQueueClaims(queueName), ...options }: LockedCommit,
): Promise<Row[][]> {
  const commit = async (taken: Sql) => (await database.commit([taken, ...statements], options)).slice(1);
  const { features } = database;
  if (features?.hasAdvisoryLocks !== false) {
    try {
      return await commit(locks);
    } catch (error) {
      if (!features || !lacksAdvisoryLocks(error)) throw error;
      features.hasAdvisoryLocks = false;
    }
  }
  return commit(sql`SELECT s.key FROM ${table('system_identity')} AS s ${lock('update', 's')}`);
}
