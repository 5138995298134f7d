// Pools and clients of `pg`, for the adapters built on it.
import { notConnected } from './failures.js';
import pg from 'pg';
import { consoleLogger } from '../../kernel/base/log.js';
import { defaultRegistry } from '../../run/plugin.js';
import { PgSession } from '../../database/postgres/pg-session.js';
import type { DataSourceSQLExecutor } from './completion-schema.js';

/** A pool of the application, or the configuration for one. */
export type PoolOrConfig = pg.Pool | pg.PoolConfig;
/** A pool or client of the application, or the configuration for one. */
export type ClientOrConfig = pg.Pool | pg.ClientBase | pg.ClientConfig;

/** Keeps the `error` event of a broken connection from ending the process. Queries in flight see the error anyway. */
export function guardDataSourcePoolPG(pool: pg.Pool, dataSourceType: string): void {
  const warn = (error: Error): void => {
    const logger = defaultRegistry.engine?.runtime.logger ?? consoleLogger();
    logger.warn(`Lost a connection of ${dataSourceType}: ${error.message}`);
  };
  guard(pool, warn);
}

function guard(pool: pg.Pool, onError: (error: Error) => void): void {
  pool.on('error', onError);
  pool.on('acquire', (client) => client.on('error', onError));
  pool.on('release', (_error, client) => client.removeListener('error', onError));
}

/** The transaction in flight sees the error, and is retried. */
const ignoreError = (): void => {};

/** A pool that is created at launch and ended at shutdown, unless it is the application's own. */
export class ManagedPool {
  readonly #given: PoolOrConfig;
  readonly #type: string;
  #pool: pg.Pool | undefined;
  #isGuarded = false;

  constructor(given: PoolOrConfig, type: string) {
    this.#given = given;
    this.#type = type;
  }

  open(): pg.Pool {
    const isGiven = 'connect' in this.#given;
    this.#pool ??= isGiven ? this.#given : new pg.Pool(this.#given);
    if (!isGiven || !this.#isGuarded) guard(this.#pool, ignoreError);
    this.#isGuarded = true;
    return this.#pool;
  }

  get pool(): pg.Pool {
    if (this.#pool) return this.#pool;
    throw notConnected(this.#type);
  }

  async close(): Promise<void> {
    const pool = this.#pool;
    this.#pool = undefined;
    if (pool !== this.#given) await pool?.end();
  }
}

/** Runs statements in one transaction, on a client of the application or a new one. */
export async function inTransactionPG(
  given: ClientOrConfig,
  body: (exec: DataSourceSQLExecutor) => Promise<void>,
): Promise<void> {
  const borrowed = await borrow(given);
  const { client } = borrowed;
  try {
    await client.query('BEGIN');
    await body(async (text) => (await client.query<Record<string, unknown>>(text)).rows);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    await borrowed.release();
  }
}

async function borrow(given: ClientOrConfig): Promise<{ client: pg.ClientBase; release(): Promise<void> | void }> {
  if ('totalCount' in given) {
    const client = await given.connect();
    return { client, release: () => client.release() };
  }
  if ('query' in given) return { client: given, release: () => {} };
  const session = new PgSession(given);
  await session.connect();
  return { client: session, release: () => session.end() };
}
