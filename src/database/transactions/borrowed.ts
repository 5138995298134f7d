// Runs statements on a caller's connection, in the caller's transaction. Commits, rollbacks and retries are up to the
// caller.
import { DBOSInvalidArgumentError } from '../../kernel/errors/errors.js';
import { type Dialect, render, type Sql } from '../../kernel/sql/sql.js';
import type { Database, Executor, Row } from '../database.js';
import { refuseOtherCopy } from '../sqlite/copies-of-sqlite.js';
import { toBindValue } from '../sqlite/sqlite-handle.js';

/** A `pg` client, perhaps in a transaction. */
export interface BorrowedPostgresClient {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>;
}

/** A `better-sqlite3` or `node:sqlite` handle. */
export interface BorrowedSqliteHandle {
  prepare(text: string): { all(...values: never[]): unknown[] };
}

export type BorrowedConnection = BorrowedPostgresClient | BorrowedSqliteHandle;

/** Runs statements on the caller's connection, which must be to the same kind of database. */
export async function borrow(database: Database, connection: BorrowedConnection): Promise<Executor> {
  const { dialect } = database;
  if (dialect.name === 'sqlite' && 'prepare' in connection)
    await refuseOtherCopy(database, async (text) => connection.prepare(text).all() as Row[]);
  return { dialect, run: (statement) => runOn(dialect, connection, statement) };
}

async function runOn(dialect: Dialect, connection: BorrowedConnection, statement: Sql): Promise<Row[]> {
  const { text, values } = render(statement, dialect);
  if (dialect.name === 'postgres' && 'query' in connection) {
    refusePool(connection);
    return (await connection.query(text, [...values])).rows as Row[];
  }
  if (dialect.name === 'sqlite' && 'prepare' in connection) {
    // Each library has its own type of values; ours fit all of them.
    return connection.prepare(text).all(...(values.map(toBindValue) as never[])) as Row[];
  }
  throw new DBOSInvalidArgumentError(
    dialect.name === 'postgres'
      ? 'The system database is on Postgres, so the transaction must be on a `pg` client.'
      : 'The system database is on SQLite, so the transaction must be on a `better-sqlite3` or `node:sqlite` handle.',
  );
}

/** A pool has the same method, but runs each statement on any connection. */
function refusePool(connection: BorrowedPostgresClient): void {
  if (!('totalCount' in connection)) return;
  throw new DBOSInvalidArgumentError(
    'Pass the `pg` client on which the transaction was started, not the pool.',
    'connection',
  );
}
