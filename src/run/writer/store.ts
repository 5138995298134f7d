// The system database, ready for use: opened, at the right version, with its writer, its listener and its bus.
import { existsSync } from 'node:fs';
import { type Clock, systemClock } from '../../kernel/base/clock.js';
import { locateDatabase } from '../../kernel/base/url.js';
import { InvalidDatabaseURLError } from '../../kernel/errors/database-errors.js';
import { DBOSInitializationError } from '../../kernel/errors/errors.js';
import type { Database } from '../../database/database.js';
import { SqliteDatabase } from '../../database/sqlite/sqlite-database.js';
import { SqliteListener } from '../../database/sqlite/sqlite-listener.js';
import { Bus } from '../../database/notify/bus.js';
import type { Listener } from '../../database/notify/listener.js';
import type { StoreOptions } from './store-options.js';
import { Writer } from './writer.js';

export type { StoreOptions };

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
    const { hasSessions = true, hasNotifications = true } = this.database.features ?? {};
    return this.#isNotified && hasSessions && hasNotifications;
  }

  /** Opens the database, creates or migrates it if asked to, and starts listening. */
  static async open(options: StoreOptions): Promise<Store> {
    const clock = options.clock ?? systemClock;
    // A tenth of the package is migrations, which only an open needs. They are loaded while the database is connected to.
    const migrations = import('../../database/migrations/migrate.js');
    const { database, listener } = await openDatabase({ ...options, clock });
    try {
      const { migrate, verify } = await migrations;
      // Its triggers would fail the writes of other programs on a server without NOTIFY.
      const useListenNotify = (options.useListenNotify ?? true) && database.features?.hasNotifications !== false;
      if (options.runMigrations ?? true) await migrate(database, { ...options, useListenNotify });
      else await verify(database, options);
      if (options.isListening ?? true) await listener.start();
    } catch (error) {
      await listener.stop();
      await database.close();
      throw error;
    }
    const { logger, isPatient, callTimeoutMs } = options;
    const bus = new Bus({ clock, logger, listener });
    const store = new Store(
      database,
      new Writer(database, { clock, logger, bus, isPatient, callTimeoutMs }),
      listener,
      bus,
    );
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
    const { logger, allowAffectedSqlite, readsBesideOthers = false } = options;
    const warn = readsBesideOthers ? undefined : (message: string) => logger.warn(message);
    const ifAffected = allowAffectedSqlite ? undefined : { readsBesideOthers, warn };
    const database = await SqliteDatabase.open({ ...options, path: location.path, ifAffected });
    return { database, listener: new SqliteListener(database, options) };
  }
  if (location?.kind !== 'postgres') {
    throw new InvalidDatabaseURLError(
      // Do not quote it: in a malformed URL the password may be anywhere.
      'Invalid database URL: it is neither a Postgres nor a SQLite URL. ' +
        'Write postgresql://user:password@host:5432/database or sqlite:///path/app.sqlite.',
    );
  }
  const { openPostgres } = await import('../../database/postgres/open-postgres.js');
  return openPostgres(options);
}

/** Opening the path would create an empty file: a typo would leave one behind. */
function refuseMissingFile(path: string): void {
  if (path === ':memory:' || existsSync(path)) return;
  throw new DBOSInitializationError(
    `SQLite file "${path}" does not exist. Check the path, or create it: launch the application with migrations, or ` +
      'run `npx everstep migrate`.',
  );
}
