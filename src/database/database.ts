// The interface between the repositories and the two drivers. Above it there are only `sql` statements; below it,
// connections, files and error codes.
import type { Dialect, Lacking, Sql } from '../kernel/sql/sql.js';

export type Row = Readonly<Record<string, unknown>>;

/** Runs statements: an open transaction, or the database itself. */
export interface Executor {
  readonly dialect: Dialect;
  /** Runs one statement and returns its rows. Outside a transaction it commits on its own. */
  run(statement: Sql): Promise<Row[]>;
}

export interface Reader {
  /** Runs one SELECT. On SQLite it does not wait for the writer. */
  read(statement: Sql): Promise<Row[]>;
}

export interface ConnectionUse {
  readonly open: number;
  readonly idle: number;
  /** Calls waiting for a connection. */
  readonly waiting: number;
}

/** Options for ad-hoc queries. */
export interface ObserveOptions {
  /** 0 for no limit. SQLite ignores it. */
  readonly timeoutMs: number;
  /**
   * Which scans the planner may use: all, plain index scans, or index and bitmap scans. A list with a limit reads an index
   * in order; without statistics the planner would sort all workflows to find the first hundred.
   */
  readonly scans: 'all' | 'index' | 'bitmap';
}

export interface TransactionOptions {
  /**
   * All statements see the database as it was at the first one. A row that was changed since then cannot be changed: that
   * fails with a serialization failure. On SQLite no other process can write meanwhile.
   */
  readonly isSnapshot?: boolean;
}

export interface CommitOptions {
  /**
   * How long a statement waits for a lock before it fails, and with it the commit. Default: until the lock is free. SQLite,
   * which locks the whole file, ignores it.
   */
  readonly lockTimeoutMs?: number;
  /**
   * The commit does not wait for the disk. A crash of the server may undo it, but then also everything committed after it:
   * what depends on it is never durable before it.
   */
  readonly relaxed?: boolean;
  /**
   * Runs after the commit in the same round trip, whether or not the commit succeeds. Its own failure is ignored. Only
   * listeners pass one.
   */
  readonly afterCommit?: Sql;
  /** It does no harm if it is executed after its own repetition. On Postgres it then needs no fence. */
  readonly mayBeLate?: boolean;
}

export interface TransactionOptions {
  /** `all`: for statements that have to read whole tables. SQLite ignores it. */
  readonly scans?: 'all';
}

export interface ServerFeatures {
  hasAdvisoryLocks: boolean;
  /** Whether it has LISTEN and NOTIFY. */
  readonly hasNotifications: boolean;
  readonly hasSkipLocked: boolean;
  /** Whether a connection is a session: not behind a pooler in transaction mode. */
  readonly hasSessions: boolean;
}

/** Compares with a database, and returns what to do when that is committed. */
export type Comparison = (tx: Executor) => Promise<() => void>;

export interface Database extends Executor, Reader {
  /** What the server has, as far as it was found out; undefined where it cannot lack anything. */
  readonly features?: ServerFeatures;
  /** How many commits the group writer may have in flight. Undefined for one. */
  readonly commitsMax?: number;
  /** Runs an ad-hoc SELECT. It is planned for its values, and fails with DBOSQueryTimeoutError if it takes too long. */
  observe(statement: Sql, options: ObserveOptions): Promise<Row[]>;
  /** Runs the statements in order in one commit and returns the rows of each. All or nothing. */
  commit(statements: readonly Sql[], options?: CommitOptions): Promise<Row[][]>;
  /** Runs `body` in a transaction: committed when it returns, rolled back when it throws. */
  transaction<T>(body: (tx: Executor) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /** Runs `body` with exclusive use of one connection. For migrations. */
  exclusive<T>(body: (connection: Connection) => Promise<T>): Promise<T>;
  /**
   * Calls back when a connection leads to a server that was promoted, which may lack what was committed before, in a
   * transaction there and before any other statement. What it returns is called after the commit. One listener. Postgres
   * only.
   */
  onPromoted?(compare: Comparison): void;
  /** Aborts when another server takes the place of the present one. Postgres only. */
  readonly reign?: AbortSignal;
  /** Aborts when the file was deleted or replaced. Its reason is the error of all further calls. SQLite only. */
  readonly lost?: AbortSignal;
  /** Declares what the database lacks because only DBOS has migrated it. Postgres only. */
  lack?(lacking: Lacking): void;
  /** Use of the connection pool, if there is one. */
  connectionUse?(): ConnectionUse | undefined;
  /** Finishes calls in flight and closes all connections. Later calls fail with DatabaseClosedError. */
  close(): Promise<void>;
}

/** A connection held for several statements; the holder controls its transactions. */
export interface Connection extends Executor {
  /** Runs one or more statements without parameters. */
  script(text: string): Promise<void>;
  transaction<T>(body: (tx: Connection) => Promise<T>, options?: TransactionOptions): Promise<T>;
}
