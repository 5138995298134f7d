// Statements on a connection that is the caller's own, in the caller's own transaction. Nothing is committed, rolled
// back or tried again here: that is the caller's business.
import { DBOSInvalidArgumentError } from '../../model/errors/errors.js';
import { type Dialect, render, type Sql } from '../../sql/sql.js';
import type { Executor, Row } from '../database.js';
import { toBindValue } from '../sqlite/sqlite-handle.js';

/** A client of `pg`, checked out and perhaps in a transaction. */
export interface BorrowedPostgresClient {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>;
}

/** A handle of `better-sqlite3` or `node:sqlite`. */
export interface BorrowedSqliteHandle {
  prepare(text: string): { all(...values: never[]): unknown[] };
}

export type BorrowedConnection = BorrowedPostgresClient | BorrowedSqliteHandle;

/** Runs statements of the dialect on the caller's connection, which must be one to the same kind of database. */
export function borrow(dialect: Dialect, connection: BorrowedConnection): Executor {
  return { dialect, run: (statement) => runOn(dialect, connection, statement) };
}

async function runOn(dialect: Dialect, connection: BorrowedConnection, statement: Sql): Promise<Row[]> {
  const { text, values } = render(statement, dialect);
  if (dialect.name === 'postgres' && 'query' in connection) {
    refusePool(connection);
    return (await connection.query(text, [...values])).rows as Row[];
  }
  if (dialect.name === 'sqlite' && 'prepare' in connection) {
    // The libraries want their own types of values; these are of all of them.
    return connection.prepare(text).all(...(values.map(toBindValue) as never[])) as Row[];
  }
  throw new DBOSInvalidArgumentError(
    dialect.name === 'postgres'
      ? 'The system database is on Postgres, so the transaction must be one of a `pg` client.'
      : 'The system database is on SQLite, so the transaction must be one of a `better-sqlite3` or `node:sqlite` handle.',
    'connection',
  );
}

/** A pool has the same method, but gives each statement to any of its connections. */
function refusePool(connection: BorrowedPostgresClient): void {
  if (!('totalCount' in connection)) return;
  throw new DBOSInvalidArgumentError(
    'Pass the `pg` client on which the transaction was begun, not the pool.',
    'connection',
  );
}
