// Serialises the claims of a queue whose limits apply across processes, by an advisory lock of the queue. A server without
// advisory locks has one row for all queues instead: in-memory queues have no row of their own.
import { advisoryLock, lock, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { CommitOptions, Database, Row } from '../../database/database.js';
import { lacksAdvisoryLocks } from '../../database/postgres/postgres-errors.js';
import { guardClaims, type GuardedClaims } from './foreign-claims.sql.js';

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

interface CommittedClaims {
  readonly results: Row[][];
  /** Whether workers of DBOS are connected that may want what is left. */
  readonly hasRivals: boolean;
}

/** Commits the statements of claims under the lock of their queue, and under those that DBOS workers take. */
export async function commitClaims(
  database: Database,
  claims: GuardedClaims,
  { statements, ...options }: CommitOptions & { readonly statements: readonly Sql[] },
): Promise<CommittedClaims> {
  const [scope] = claims.scopes;
  const guarded = database.dialect.name === 'postgres' ? guardClaims(claims, statements) : statements;
  const results = await commitLocked(database, scope?.queueName ?? '', { ...options, statements: guarded });
  if (guarded === statements) return { results, hasRivals: false };
  return { results: results.slice(1, -1), hasRivals: (results[0]?.length ?? 0) > 0 };
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
