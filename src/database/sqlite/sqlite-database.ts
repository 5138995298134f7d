// The system database in a SQLite file: a writer connection behind a mutex, and a reader connection. Without the mutex,
// statements of other tasks would land in the writer's open transaction. An in-memory database has one connection for both.
import { recognizeCopies } from '../../kernel/base/copies.js';
import { closeSync, existsSync, openSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { type Clock, sleep, systemClock } from '../../kernel/base/clock.js';
import { Mutex } from '../../kernel/base/mutex.js';
import {
  AffectedSqliteError,
  DatabaseClosedError,
  DatabaseUnavailableError,
} from '../../kernel/errors/database-errors.js';
import { type Dialect, render, type Sql } from '../../kernel/sql/sql.js';
import { sqliteDialect } from '../../kernel/sql/sqlite-dialect.js';
import type { CommitOptions, Connection, Database, Executor, Row } from '../database.js';
import { isBusy, sqliteCode, translateSqliteError } from './sqlite-errors.js';
import { claimFile, hasWalResetBug } from './wal-reset-bug.js';
import {
  findSqliteLibrary,
  type SqliteHandle,
  type SqliteLibrary,
  type SqliteStatement,
  toBindValue,
} from './sqlite-handle.js';

export interface SqliteOptions {
  /** Path of the file, or `:memory:`. */
  readonly path: string;
  readonly clock?: Clock;
  /** Replaces the database clock, for tests that control time. */
  readonly now?: () => number;
  /** How long to wait for another process's write lock. */
  readonly busyTimeoutMs?: number;
  readonly library?: SqliteLibrary;
  /** What to do if this version of SQLite can corrupt a file that several processes use. Default: use it. */
  readonly ifAffected?: {
    /** Opens the file for reading if another process or thread has it open. Otherwise that is refused. */
    readonly readsBesideOthers: boolean;
    /** Called for the first who opens the file here. */
    readonly warn?: (message: string) => void;
  };
}

const BUSY_TIMEOUT_MS = 10_000;
/** How long opening a file or reading may block the thread for a lock. */
const BLOCKING_TIMEOUT_MS = 20;
const BUSY_DELAY_MAX_MS = 10;
const STATEMENT_CACHE_MAX = 500;
/** The WAL size that triggers a checkpoint. With SQLite's default of 1000, a busy writer checkpoints all the time. */
const CHECKPOINT_PAGES = 4000;

/** A handle with a cache of prepared statements. */
class PreparedHandle {
  readonly #statements = new Map<string, SqliteStatement>();

  constructor(readonly handle: SqliteHandle) {}

  run(statement: Sql, dialect: Dialect): Row[] {
    const { text, values } = render(statement, dialect);
    const rows = this.#prepare(text).all(values.map(toBindValue));
    for (const row of rows) readAsText(row);
    return rows;
  }

  /** Runs a statement without parameters or rows, such as COMMIT. */
  execute(text: string): void {
    this.#prepare(text).all([]);
  }

  #prepare(text: string): SqliteStatement {
    const known = this.#statements.get(text);
    if (known) return known;
    if (this.#statements.size >= STATEMENT_CACHE_MAX) this.#statements.clear();
    const statement = this.handle.prepare(text);
    this.#statements.set(text, statement);
    return statement;
  }
}

/** No column of ours has blobs, but SQLite lets other programs store them in any. All code may expect text. */
function readAsText(row: Record<string, unknown>): void {
  for (const column in row) {
    const value = row[column];
    if (value instanceof Uint8Array) row[column] = Buffer.from(value).toString('utf8');
  }
}

export class SqliteDatabase implements Database {
  static {
    recognizeCopies(this, 'SqliteDatabase');
  }

  readonly dialect: Dialect;
  readonly #options: SqliteOptions;
  readonly #clock: Clock;
  readonly #mutex = new Mutex();
  readonly #writer: PreparedHandle;
  readonly #reader: PreparedHandle;
  readonly #giveUp: () => void;
  readonly #refusal: AffectedSqliteError | undefined;
  readonly #lost = new AbortController();
  /** The working directory may change. */
  readonly #fullPath: string;
  readonly #file: string | undefined;
  /** What it is opened with. */
  readonly library: SqliteLibrary;
  #isClosed = false;

  private constructor(options: SqliteOptions, { library, writer, reader, giveUp, refusal }: Opened) {
    this.#options = options;
    this.library = library;
    this.#giveUp = giveUp;
    this.#refusal = refusal;
    this.#fullPath = resolve(options.path);
    this.#file = options.path === ':memory:' ? undefined : fileAt(this.#fullPath);
    this.#clock = options.clock ?? systemClock;
    this.dialect = sqliteDialect({ now: options.now });
    this.#writer = new PreparedHandle(writer);
    this.#reader = reader === writer ? this.#writer : new PreparedHandle(reader);
  }

  /** Opens the file, creating it if it does not exist. */
  static async open(options: SqliteOptions): Promise<SqliteDatabase> {
    const library = options.library ?? (await findSqliteLibrary());
    const { path, ifAffected } = options;
    const open = (): Promise<SqliteHandle> => whileBusy(options, () => openConfigured(library, path));
    let giveUp = (): void => {};
    try {
      prepareFile(path);
      // First: to open and to close a file may checkpoint it.
      if (ifAffected && path !== ':memory:' && hasWalResetBug(library.version)) {
        giveUp = claimFile(library, path, ifAffected.warn);
      }
      const writer = await open();
      // Never blocks: the lock may belong to a transaction of this very thread, which could not end meanwhile.
      writer.exec('PRAGMA busy_timeout = 0');
      if (path === ':memory:') return new SqliteDatabase(options, { library, writer, reader: writer, giveUp });
      const reader = await open();
      // It never writes, so that it never checkpoints; and it is closed before the writer.
      reader.exec('PRAGMA query_only = ON');
      return new SqliteDatabase(options, { library, writer, reader, giveUp });
    } catch (error) {
      giveUp();
      if (error instanceof AffectedSqliteError && ifAffected?.readsBesideOthers) {
        const reader = library.open(path, { isReadOnly: true });
        reader.exec(`PRAGMA busy_timeout = ${BLOCKING_TIMEOUT_MS}`);
        return new SqliteDatabase(options, { library, writer: reader, reader, giveUp, refusal: error });
      }
      throw translateSqliteError(error, path);
    }
  }

  get path(): string {
    return this.#options.path;
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  run(statement: Sql): Promise<Row[]> {
    return this.#write(() => this.#writer.run(statement, this.dialect));
  }

  async read(statement: Sql): Promise<Row[]> {
    if (this.#reader === this.#writer) return this.run(statement);
    this.#refuseIfClosed();
    // Only writes and the listener look at the file: that takes as long as a small read.
    this.#lost.signal.throwIfAborted();
    try {
      return this.#reader.run(statement, this.dialect);
    } catch (error) {
      throw this.#translate(error);
    }
  }

  observe(statement: Sql): Promise<Row[]> {
    return this.read(statement);
  }

  commit(statements: readonly Sql[], { relaxed = false }: CommitOptions = {}): Promise<Row[][]> {
    return this.#write(() => {
      if (!relaxed) return this.#commit(statements);
      this.#writer.execute('PRAGMA synchronous = NORMAL');
      try {
        return this.#commit(statements);
      } finally {
        this.#writer.execute('PRAGMA synchronous = FULL');
      }
    });
  }

  #commit(statements: readonly Sql[]): Row[][] {
    const [only] = statements;
    if (only && statements.length === 1) return [this.#writer.run(only, this.dialect)];
    this.#writer.execute('BEGIN IMMEDIATE');
    try {
      const results = statements.map((statement) => this.#writer.run(statement, this.dialect));
      this.#writer.execute('COMMIT');
      return results;
    } catch (error) {
      this.#rollBack();
      throw error;
    }
  }

  transaction<T>(body: (tx: Executor) => Promise<T>): Promise<T> {
    return this.exclusive((connection) => connection.transaction(body));
  }

  exclusive<T>(body: (connection: Connection) => Promise<T>): Promise<T> {
    return this.#mutex.run(() => {
      this.#refuseIfClosed();
      return body(this.#connection());
    });
  }

  /** Changes when another connection commits to the file. Undefined during a transaction here, when none can. */
  dataVersion(): number | undefined {
    if (this.#isClosed || this.#mutex.isLocked || this.#isLost()) return undefined;
    return this.#writer.handle.prepare('PRAGMA data_version').all([])[0]?.['data_version'] as number;
  }

  async close(): Promise<void> {
    await this.#mutex.run(() => {
      if (this.#isClosed) return;
      this.#isClosed = true;
      if (this.#reader !== this.#writer) this.#reader.handle.close();
      this.#writer.handle.close();
      this.#giveUp();
    });
  }

  #connection(): Connection {
    const attempt = <T>(body: () => T): Promise<T> => this.#attempt(body);
    const connection: Connection = {
      dialect: this.dialect,
      run: (statement) => attempt(() => this.#writer.run(statement, this.dialect)),
      script: (text) => attempt(() => this.#writer.handle.exec(text)),
      transaction: async (body) => {
        await attempt(() => this.#writer.execute('BEGIN IMMEDIATE'));
        try {
          const result = await body(connection);
          await attempt(() => this.#writer.execute('COMMIT'));
          return result;
        } catch (error) {
          this.#rollBack();
          throw error;
        }
      },
    };
    return connection;
  }

  #write<T>(body: () => T): Promise<T> {
    return this.#mutex.run(() => {
      this.#refuseIfClosed();
      return this.#attempt(body);
    });
  }

  async #attempt<T>(body: () => T): Promise<T> {
    try {
      return await whileBusy({ ...this.#options, clock: this.#clock }, () => {
        if (this.#isLost()) this.#lost.signal.throwIfAborted();
        return body();
      });
    } catch (error) {
      throw this.#translate(error);
    }
  }

  #translate(error: unknown): unknown {
    return this.#refusal && sqliteCode(error).startsWith('SQLITE_READONLY')
      ? this.#refusal
      : translateSqliteError(error, this.path);
  }

  #rollBack(): void {
    try {
      this.#writer.execute('ROLLBACK');
    } catch {
      // After some failures (full disk, lost file) SQLite has already rolled back.
    }
  }

  /** SQLite itself would go on: in a file that nobody finds, and that is gone when the process ends. */
  #isLost(): boolean {
    if (this.#lost.signal.aborted) return true;
    if (this.#file === undefined || this.#file === (fileAt(this.#fullPath) ?? this.#file)) return false;
    this.#lost.abort(
      new DatabaseUnavailableError(
        `The SQLite file "${this.path}" was deleted or replaced while this process had it open. Nothing more is stored. ` +
          'Restart the process: it opens the file that is there then.',
      ),
    );
    return true;
  }

  #refuseIfClosed(): void {
    if (this.#isClosed) throw new DatabaseClosedError(`This process has closed the SQLite file "${this.path}".`);
  }
}

interface Opened {
  readonly library: SqliteLibrary;
  readonly writer: SqliteHandle;
  readonly reader: SqliteHandle;
  /** Lets other processes have the file. */
  readonly giveUp: () => void;
  /** Why it is opened for reading only. */
  readonly refusal?: AffectedSqliteError;
}

function prepareFile(path: string): void {
  refuseMissingFolder(path);
  createPrivateFile(path);
}

function openConfigured(library: SqliteLibrary, path: string): SqliteHandle {
  const handle = library.open(path);
  try {
    handle.exec(`PRAGMA busy_timeout = ${BLOCKING_TIMEOUT_MS}`);
    handle.exec('PRAGMA journal_mode = WAL');
    handle.exec('PRAGMA synchronous = FULL');
    handle.exec('PRAGMA foreign_keys = ON');
    handle.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    return handle;
  } catch (error) {
    handle.close();
    throw error;
  }
}

/** Identifies the file at the path, as SQLite does; undefined if that cannot be found out. */
function fileAt(path: string): string | undefined {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats ? `${stats.dev} ${stats.ino}` : 'none';
  } catch {
    return undefined;
  }
}

/** The libraries differ in how they fail, and neither names the folder that it has looked for. */
function refuseMissingFolder(path: string): void {
  const folder = dirname(resolve(path));
  if (path === ':memory:' || existsSync(folder)) return;
  throw new DatabaseUnavailableError(
    `Cannot open the SQLite file "${path}": folder "${folder}" does not exist. Create it, or check the URL: ` +
      'sqlite:///app.sqlite is relative to the working directory, sqlite:////var/lib/app.sqlite is absolute.',
  );
}

/** Only its owner may read a new file: it holds inputs and results. SQLite gives its other files the same mode. */
function createPrivateFile(path: string): void {
  if (path === ':memory:' || path === '') return;
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch {
    // It exists, or SQLite says better why it cannot be created.
  }
}

/** Retries `body` while another process locks the file, without blocking the event loop. */
async function whileBusy<T>(options: SqliteOptions, body: () => T): Promise<T> {
  const clock = options.clock ?? systemClock;
  const giveUpAt = clock.monotonic() + (options.busyTimeoutMs ?? BUSY_TIMEOUT_MS);
  for (let attempts = 1; ; attempts += 1) {
    try {
      return body();
    } catch (error) {
      if (!isBusy(error) || clock.monotonic() >= giveUpAt) throw error;
      await sleep(clock, 1 + Math.random() * Math.min(attempts, BUSY_DELAY_MAX_MS));
    }
  }
}
