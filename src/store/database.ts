// The seam between the repositories and the two drivers. Everything above it speaks `sql`; everything below
// knows connections, files and error codes.
import type { Dialect, Sql } from '../sql/sql.js';

export type Row = Readonly<Record<string, unknown>>;

/** Something that statements can be run on: an open transaction, or the database itself. */
export interface Executor {
  readonly dialect: Dialect;
  /** Runs one statement and returns its rows. Outside a transaction it is a commit of its own. */
  run(statement: Sql): Promise<Row[]>;
}

/** Something that can be read from. */
export interface Reader {
  /** Runs one SELECT. On SQLite it does not wait for the writer. */
  read(statement: Sql): Promise<Row[]>;
}

export interface ConnectionUse {
  readonly open: number;
  readonly idle: number;
  /** Calls that wait for a connection. */
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

export interface CommitOptions {
  /**
   * The commit does not wait for the disk. A crash of the server may undo it, but then also everything that was committed
   * after it: whatever rests on it is durable no sooner than it is.
   */
  readonly mayBeLost?: boolean;
  /**
   * Is run after the commit, whatever becomes of it, on the same way there. Nobody waits for it or learns that it failed.
   * Only a listener gives one.
   */
  readonly behind?: Sql;
}

export interface Database extends Executor, Reader {
  /**
   * Runs one SELECT whose shape is decided by whoever asks. It is planned for the values that it has, and stopped with
   * DBOSQueryTimeoutError when it takes too long.
   */
  observe(statement: Sql, options: ObserveOptions): Promise<Row[]>;
  /** Runs the statements one after the other in one commit and returns the rows of each. All or nothing. */
  commit(statements: readonly Sql[], options?: CommitOptions): Promise<Row[][]>;
  /** Runs `body` in a transaction: committed when it returns, rolled back when it throws. */
  transaction<T>(body: (tx: Executor) => Promise<T>): Promise<T>;
  /** Runs `body` on one connection that nobody else uses meanwhile. For migrations. */
  exclusive<T>(body: (connection: Connection) => Promise<T>): Promise<T>;
  /** How the pool of connections is used, where there is one. */
  connectionUse?(): ConnectionUse | undefined;
  /** Finishes what is under way and closes all connections. Later calls fail with a clear error. */
  close(): Promise<void>;
}

/** A connection held for several statements, with transactions under the holder's control. */
export interface Connection extends Executor {
  /** Runs a text of one or more statements without parameters. */
  script(text: string): Promise<void>;
  transaction<T>(body: (tx: Connection) => Promise<T>): Promise<T>;
}
