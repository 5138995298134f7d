// Transactions on a SQLite connection. The library is synchronous and the bodies are not, so one transaction at a time is
// open on a connection, and waiting for the file lock does not block the event loop: its holder may be this very process,
// on the connection of the system database.
import { notConnected } from './failures.js';
import type { Database } from 'better-sqlite3';
import { sleep, systemClock } from '../base/clock.js';
import { Mutex } from '../base/mutex.js';
import type { Value } from '../sql/sql.js';
import { CREATE_TABLE_SQLITE } from './completion-schema.js';
import type { PGTransactionConfig, Row } from './driver.js';
import { isConflict } from './failures.js';

/** How long a call may block the thread for a lock. */
const BLOCKING_MS = 20;
const BUSY_MAX_MS = 10_000;

/** What transactions need of a connection. */
export interface SqliteConnection {
  execute(text: string): void | Promise<void>;
}

export class SqliteTransactions {
  readonly #mutex = new Mutex();

  /** Runs `body` in a transaction. SQLite's are always serializable. */
  run<T>(connection: SqliteConnection, { readOnly }: PGTransactionConfig, body: () => Promise<T>): Promise<T> {
    return this.#mutex.run(async () => {
      // The lock for writing is taken at once: a transaction that finds it taken later could only fail.
      await whileBusy(() => connection.execute(readOnly ? 'BEGIN' : 'BEGIN IMMEDIATE'));
      try {
        if (readOnly) await connection.execute('PRAGMA query_only = ON');
        const result = await body();
        await whileBusy(() => connection.execute('COMMIT'));
        return result;
      } catch (error) {
        await rollBack(connection);
        throw error;
      } finally {
        if (readOnly) await connection.execute('PRAGMA query_only = OFF');
      }
    });
  }
}

async function whileBusy(action: () => void | Promise<void>): Promise<void> {
  const giveUpAt = systemClock.now() + BUSY_MAX_MS;
  for (;;) {
    try {
      return await action();
    } catch (error) {
      if (!isConflict(error) || systemClock.now() >= giveUpAt) throw error;
      await sleep(systemClock, 1 + Math.random() * 10);
    }
  }
}

async function rollBack(connection: SqliteConnection): Promise<void> {
  try {
    await connection.execute('ROLLBACK');
  } catch {
    // SQLite has rolled back by itself after some failures; then nothing is open.
  }
}

/** Commits survive a power failure, and a lock does not block the process. */
const SQLITE_SETTINGS = [
  'PRAGMA journal_mode = WAL',
  'PRAGMA synchronous = FULL',
  `PRAGMA busy_timeout = ${BLOCKING_MS}`,
] as const;

/** Runs one statement, whether it gives rows or not. */
export function querySqlite(database: Database, text: string, values: readonly Value[]): readonly Row[] {
  const statement = database.prepare<unknown[], Row>(text);
  const bound = values.map((value) => (typeof value === 'boolean' ? Number(value) : value));
  if (statement.reader) return statement.all(...bound);
  statement.run(...bound);
  return [];
}

/** Creates the completion table. */
export async function initializeSqlite(given: Database | string): Promise<void> {
  const database = typeof given === 'string' ? await openSqlite(given) : given;
  try {
    database.exec(CREATE_TABLE_SQLITE);
  } finally {
    if (database !== given) database.close();
  }
}

/** Opens a file. Loads the library only now: an application that brings a connection may have its own copy of it. */
export async function openSqlite(path: string): Promise<Database> {
  const { default: BetterSqlite3 } = await import('better-sqlite3');
  return new BetterSqlite3(path);
}

/** A connection that is opened at launch and closed at shutdown, unless it is the application's own. */
export class HeldSqlite {
  readonly #given: Database | string;
  #database: Database | undefined;

  constructor(given: Database | string) {
    this.#given = given;
  }

  async open(): Promise<Database> {
    const database = typeof this.#given === 'string' ? await openSqlite(this.#given) : this.#given;
    for (const setting of SQLITE_SETTINGS) database.exec(setting);
    this.#database = database;
    return database;
  }

  get database(): Database {
    if (this.#database) return this.#database;
    throw notConnected('The data source');
  }

  close(): void {
    if (this.#database !== this.#given) this.#database?.close();
    this.#database = undefined;
  }
}
