// Everything that needs `pg` to open the system database. It is loaded only for a Postgres URL: `pg` takes longer to load
// than the rest of the package.
import type pg from 'pg';
import type { Clock } from '../../base/clock.js';
import { createPostgresDatabase, onServer } from '../migrations/create-database.js';
import { CHANNELS } from '../notify/topics.js';
import type { StoreOptions } from '../store-options.js';
import { Hosts } from './hosts.js';
import { findPooling, type Pooling } from './pooling.js';
import { poolConfig } from './postgres-config.js';
import { PostgresDatabase } from './postgres-database.js';
import { translatePostgresError } from './postgres-errors.js';
import { PostgresListener } from './postgres-listener.js';
import type { PostgresOptions } from './postgres-options.js';
import { describePostgresURL } from './postgres-url.js';

/** Of the 20 connections that PgBouncer has by default, those for one process. */
const SESSION_POOLER_POOL_SIZE = 10;

export async function openPostgres(
  options: StoreOptions & { readonly clock: Clock },
): Promise<{ database: PostgresDatabase; listener: PostgresListener }> {
  const pooler = await findPooler(options);
  const hosts = Hosts.of(options.url);
  await hosts?.survey(poolConfig({ ...options, hosts }));
  const database = new PostgresDatabase({ ...options, ...pooler, hosts });
  const listener = new PostgresListener(database, {
    clock: options.clock,
    logger: options.logger,
    channels: (options.useListenNotify ?? true) ? CHANNELS : [],
    sessionLock: options.sessionLock,
    coalesceMs: options.notificationCoalesceMs,
  });
  return { database, listener };
}

/**
 * Creates the database if need be, and finds out whether a pooler in transaction mode is in the way. Behind one in session
 * mode, a process leaves others some of the 20 connections that PgBouncer has by default.
 */
async function findPooler(options: StoreOptions): Promise<Pick<PostgresOptions, 'isTransactionPooler' | 'poolSize'>> {
  const { url, logger, poolSize } = options;
  let pooling = givenPooling(options);
  const look = async (client: pg.Client): Promise<void> => {
    pooling ??= await findPooling(client, poolConfig(options));
  };
  if ((options.runMigrations ?? true) && options.pool === undefined) await createPostgresDatabase(url, options, look);
  if (pooling === undefined) {
    await onServer(url, look).catch((error: unknown) => {
      throw translatePostgresError(error, 'connect', describePostgresURL(url));
    });
  }
  const isTransactionPooler = pooling === 'transaction';
  if (isTransactionPooler && !options.isTransactionPooler) {
    logger.info('A connection pooler in transaction mode was found. Waits poll; no process can be notified.');
  }
  return { isTransactionPooler, poolSize: poolSize ?? (pooling === 'session' ? SESSION_POOLER_POOL_SIZE : undefined) };
}

function givenPooling({ isTransactionPooler }: StoreOptions): Pooling | undefined {
  if (isTransactionPooler === undefined) return undefined;
  return isTransactionPooler ? 'transaction' : 'none';
}
