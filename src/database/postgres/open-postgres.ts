// Everything that needs `pg` to open the system database. It is loaded only for a Postgres URL: `pg` takes longer to load
// than the rest of the package.
import type { Clock } from '../../kernel/base/clock.js';
import { createPostgresDatabase } from '../migrations/create-database.js';
import { CHANNELS } from '../notify/topics.js';
import type { StoreOptions } from '../../run/writer/store-options.js';
import { Hosts } from './hosts.js';
import { type PgSession, withSession } from './pg-session.js';
import { poolConfig } from './postgres-config.js';
import { PostgresDatabase } from './postgres-database.js';
import { refusesStartupOptions, translatePostgresError } from './postgres-errors.js';
import { PostgresListener } from './postgres-listener.js';
import type { PostgresOptions } from './postgres-options.js';
import { describePostgresURL, editPostgresURL, parsePostgresURL } from './postgres-url.js';
import { findLacking, findPooling, type Pooling, SERVER_FEATURES } from './server-probe.js';

/** Of the 20 connections that PgBouncer has by default, those for one process. */
const SESSION_POOLER_POOL_SIZE = 10;

export async function openPostgres(
  given: StoreOptions & { readonly clock: Clock },
): Promise<{ database: PostgresDatabase; listener: PostgresListener }> {
  const hosts = Hosts.of(given.url);
  const options = { ...given, hosts, ...(await findServer({ ...given, hosts })) };
  const database = new PostgresDatabase(options);
  const isNotifying = (options.useListenNotify ?? true) && database.features.hasNotifications;
  const listener = new PostgresListener(database, {
    clock: options.clock,
    logger: options.logger,
    channels: isNotifying ? CHANNELS : [],
    sessionLock: database.features.hasAdvisoryLocks ? options.sessionLock : undefined,
    coalesceMs: options.notificationCoalesceMs,
  });
  return { database, listener };
}

type Found = Pick<PostgresOptions, 'url' | 'startupOptions' | 'isTransactionPooler' | 'poolSize' | 'lacking'>;

type Sought = StoreOptions & { readonly hosts: Hosts | undefined };

/** As `findPooler`. If the startup options in the URL are refused, sessions get them by a statement. */
async function findServer(options: Sought): Promise<Found> {
  const { url, logger } = options;
  try {
    return { url, ...(await findPooler(options)) };
  } catch (error) {
    const startupOptions = parsePostgresURL(url).searchParams.get('options');
    if (startupOptions === null || !refusesStartupOptions(error)) throw error;
    const plainURL = editPostgresURL(url, (edited) => edited.searchParams.delete('options'));
    const found = await findPooler({ ...options, url: plainURL });
    const effect = found.isTransactionPooler ? 'have no effect' : 'are set by a statement in each session';
    logger.warn(`The server or a pooler refuses startup options. Those in the URL ${effect}.`);
    return { url: plainURL, startupOptions, ...found };
  }
}

/**
 * Creates the database if need be, and finds out what the server lacks and whether a pooler in transaction mode is in the
 * way. Behind one in session mode, a process leaves others some of the 20 connections that PgBouncer has by default.
 */
async function findPooler(options: Sought): Promise<Omit<Found, 'url'>> {
  const { url, logger, poolSize } = options;
  let pooling = givenPooling(options);
  let lacking: PostgresOptions['lacking'];
  const look = async (session: PgSession): Promise<void> => {
    pooling ??= await findPooling(session, poolConfig(options));
    lacking = await findLacking(session);
  };
  if ((options.runMigrations ?? true) && options.pool === undefined) await createPostgresDatabase(url, options, look);
  if (lacking === undefined) {
    await withSession(poolConfig(options), look).catch((error: unknown) => {
      throw translatePostgresError(error, 'connect', describePostgresURL(url));
    });
  }
  const isTransactionPooler = pooling === 'transaction';
  if (isTransactionPooler && !options.isTransactionPooler) {
    logger.info('A connection pooler in transaction mode was found. Waits poll; no process can be notified.');
  }
  for (const name of lacking ?? []) logger.warn(`The server lacks ${name}. ${SERVER_FEATURES[name].without}`);
  const poolSizeFound = poolSize ?? (pooling === 'session' ? SESSION_POOLER_POOL_SIZE : undefined);
  return { isTransactionPooler, poolSize: poolSizeFound, lacking };
}

function givenPooling({ isTransactionPooler }: StoreOptions): Pooling | undefined {
  if (isTransactionPooler === undefined) return undefined;
  return isTransactionPooler ? 'transaction' : 'none';
}
