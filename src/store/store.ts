// The system database, ready for use: opened, at the right version, with its writer, its listener and its bus.
import { existsSync } from 'node:fs';
import { type Clock, systemClock } from '../base/clock.js';
import type { DLogger } from '../base/log.js';
import { locateDatabase } from '../base/url.js';
import { InvalidDatabaseURLError } from '../model/errors/database-errors.js';
import { DBOSInitializationError } from '../model/errors/errors.js';
import type { Database } from './database.js';
import { createPostgresDatabase } from './migrations/create-database.js';
import { migrate, verify } from './migrations/migrate.js';
import { PostgresDatabase } from './postgres/postgres-database.js';
import type { PostgresOptions } from './postgres/postgres-options.js';
import { PostgresListener } from './postgres/postgres-listener.js';
import { SqliteDatabase } from './sqlite/sqlite-database.js';
import { SqliteListener } from './sqlite/sqlite-listener.js';
import { Bus } from './notify/bus.js';
import type { Listener } from './notify/listener.js';
import { CHANNELS } from './notify/topics.js';
import { Writer } from './writer/writer.js';

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
  private constructor(
    readonly database: Database,
    readonly writer: Writer,
    readonly listener: Listener,
    readonly bus: Bus,
  ) {}

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
    return new Store(database, new Writer(database, { clock, logger, bus, isPatient }), listener, bus);
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
  if ((options.runMigrations ?? true) && options.pool === undefined) {
    await createPostgresDatabase(options.url, options);
  }
  const database = new PostgresDatabase(options);
  const listener = new PostgresListener(database, {
    clock: options.clock,
    logger: options.logger,
    channels: (options.useListenNotify ?? true) ? CHANNELS : [],
    sessionLock: options.sessionLock,
    coalesceMs: options.notificationCoalesceMs,
  });
  return { database, listener };
}

/** Opening the path would create an empty file: a typo would leave one behind. */
function refuseMissingFile(path: string): void {
  if (path === ':memory:' || existsSync(path)) return;
  throw new DBOSInitializationError(
    `SQLite file "${path}" does not exist. Check the path, or create it: launch the application with migrations, or ` +
      'run `npx everstep migrate`.',
  );
}
