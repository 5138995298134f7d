// The system database, ready for use: opened, at the right version, with its writer, its listener and its bus.
import { existsSync } from 'node:fs';
import type pg from 'pg';
import { type Clock, systemClock } from '../base/clock.js';
import type { DLogger } from '../base/log.js';
import { locateDatabase } from '../base/url.js';
import { InvalidDatabaseURLError } from '../model/errors/database-errors.js';
import { DBOSInitializationError } from '../model/errors/errors.js';
import type { Database } from './database.js';
import { createPostgresDatabase, onServer } from './migrations/create-database.js';
import { migrate, verify } from './migrations/migrate.js';
import { Hosts } from './postgres/hosts.js';
import { findPooling, type Pooling } from './postgres/pooling.js';
import { describePostgresURL, poolConfig } from './postgres/postgres-config.js';
import { translatePostgresError } from './postgres/postgres-errors.js';
import { PostgresDatabase } from './postgres/postgres-database.js';
import type { PostgresOptions } from './postgres/postgres-options.js';
import { PostgresListener } from './postgres/postgres-listener.js';
import { SqliteDatabase } from './sqlite/sqlite-database.js';
import { SqliteListener } from './sqlite/sqlite-listener.js';
import { Bus } from './notify/bus.js';
import type { Listener } from './notify/listener.js';
import { CHANNELS } from './notify/topics.js';
import { Writer } from './writer/writer.js';

const SESSION_POOLER_POOL_SIZE = 10;

export interface StoreOptions extends Omit<PostgresOptions, 'clock' | 'logger'> {
  readonly logger: DLogger;
  readonly clock?: Clock;
  /** False only verifies the version. */
  readonly runMigrations?: boolean;
  /** Without migrations: whether a database that only DBOS has migrated will do. */
  readonly acceptsDBOS?: boolean;
  /** False disables LISTEN, NOTIFY and the triggers; waits then poll. */
  readonly useListenNotify?: boolean;
  /** The advisory lock to hold on the listening connection. */
  readonly sessionLock?: string;
  /** False defers listening until `listener.start()` is called. */
  readonly isListening?: boolean;
  /** Whether the writer waits out conditions of the database that may need an operator. For engines. */
  readonly isPatient?: boolean;
  /** How long notifications are collected before they are sent. */
  readonly notificationCoalesceMs?: number;
}

export class Store {
  #isNotified = true;

  private constructor(
    readonly database: Database,
    readonly writer: Writer,
    readonly listener: Listener,
    readonly bus: Bus,
  ) {}

  /** Whether notifications from other processes reach this one. */
  get hasPush(): boolean {
    return this.#isNotified && this.database.features?.hasSessions !== false;
  }

  /** Opens the database, creates or migrates it if asked to, and starts listening. */
  static async open(options: StoreOptions): Promise<Store> {
    const clock = options.clock ?? systemClock;
    const { database, listener } = await openDatabase({ ...options, clock });
    try {
      if (options.runMigrations ?? true) await migrate(database, options);
      else await verify(database, options);
      if (options.isListening ?? true) await listener.start();
    } catch (error) {
      await listener.stop();
      await database.close();
      throw error;
    }
    const { logger, isPatient } = options;
    const bus = new Bus({ clock, logger, listener });
    const store = new Store(database, new Writer(database, { clock, logger, bus, isPatient }), listener, bus);
    store.#isNotified = options.useListenNotify ?? true;
    return store;
  }

  /** Flushes the writer, stops listening, and closes the connections. */
  async close(): Promise<void> {
    await this.writer.close();
    this.bus.close();
    await this.listener.stop();
    await this.database.close();
  }
}

/** Opens the database without checking its version. With `runMigrations`, creates it if it is missing. */
export async function openDatabase(
  options: StoreOptions & { readonly clock: Clock },
): Promise<{ database: Database; listener: Listener }> {
  const location = locateDatabase(options.url);
  if (location?.kind === 'sqlite') {
    if (options.runMigrations === false) refuseMissingFile(location.path);
    const database = await SqliteDatabase.open({ ...options, path: location.path });
    return { database, listener: new SqliteListener(database, options) };
  }
  if (location?.kind !== 'postgres') {
    throw new InvalidDatabaseURLError(
      // Do not quote it: in a malformed URL the password may be anywhere.
      'Invalid database URL: it is neither a Postgres nor a SQLite URL. ' +
        'Write postgresql://user:password@host:5432/database or sqlite:///path/app.sqlite.',
    );
  }
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

/** Opening the path would create an empty file: a typo would leave one behind. */
function refuseMissingFile(path: string): void {
  if (path === ':memory:' || existsSync(path)) return;
  throw new DBOSInitializationError(
    `SQLite file "${path}" does not exist. Check the path, or create it: launch the application with migrations, or ` +
      'run `npx everstep migrate`.',
  );
}
