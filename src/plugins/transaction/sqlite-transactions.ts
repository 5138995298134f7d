// Transactions on a SQLite connection. The library is synchronous but the bodies are not, so a connection has one open
// transaction at a time. Waiting for the file lock must not block the event loop: its holder may be this very process,
// on the connection to the system database.
import { notConnected } from './failures.js';
import type { Database } from 'better-sqlite3';
import { sleep, systemClock } from '../../kernel/base/clock.js';
import { Mutex } from '../../kernel/base/mutex.js';
import type { Value } from '../../kernel/sql/sql.js';
import { CREATE_TABLE_SQLITE } from './completion-schema.js';
import type { PGTransactionConfig, Row } from './driver.js';
import { isConflict } from './failures.js';

/** How long a statement of the application may block the event loop for the lock, outside of transactions. */
const BLOCKING_MS = 20;
const BUSY_MAX_MS = 10_000;

export interface SqliteConnection {
  execute(text: string): void | Promise<void>;
}

export class SqliteTransactions {
  readonly #mutex = new Mutex();

  /** Runs `body` in a transaction. SQLite transactions are always serializable. */
  run<T>(connection: SqliteConnection, { readOnly }: PGTransactionConfig, body: () => Promise<T>): Promise<T> {
    return this.#mutex.run(async () => {
      // Take the write lock at once: a transaction that fails to get it later could only be rolled back.
      await begin(connection, readOnly ? 'BEGIN' : 'BEGIN IMMEDIATE');
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

/** Never blocks the thread: the lock may belong to another connection in it. */
async function begin(connection: SqliteConnection, text: string): Promise<void> {
  await connection.execute('PRAGMA busy_timeout = 0');
  try {
    await whileBusy(() => connection.execute(text));
  } finally {
    await connection.execute(`PRAGMA busy_timeout = ${BLOCKING_MS}`);
  }
}

async function whileBusy(action: () => void | Promise<void>): Promise<void> {
  const giveUpAt = systemClock.monotonic() + BUSY_MAX_MS;
  for (;;) {
    try {
      return await action();
    } catch (error) {
      if (!isConflict(error) || systemClock.monotonic() >= giveUpAt) throw error;
      await sleep(systemClock, 1 + Math.random() * 10);
    }
  }
}

async function rollBack(connection: SqliteConnection): Promise<void> {
  try {
    await connection.execute('ROLLBACK');
  } catch {
    // After some failures SQLite has rolled back already.
  }
}

/** Commits survive a power failure, and a lock does not block the event loop for long. */
const SQLITE_SETTINGS = [
  'PRAGMA journal_mode = WAL',
  'PRAGMA synchronous = FULL',
  `PRAGMA busy_timeout = ${BLOCKING_MS}`,
] as const;

/** Runs one statement, whether it returns rows or not. */
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

/** Opens a file. Loads the library only here: an application that passes a connection may have its own copy of it. */
export async function openSqlite(path: string): Promise<Database> {
  const { default: BetterSqlite3 } = await import('better-sqlite3');
  return new BetterSqlite3(path);
}

/** A connection that is opened at launch and closed at shutdown, unless it is the application's own. */
export class ManagedSqlite {
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
