// Tokens for what the user's database stores differently: times, UUIDs and bytes. On Postgres they are TIMESTAMPTZ, UUID
// and BYTEA; on SQLite epoch milliseconds, TEXT and BLOB. Parameters are cast, because not every client infers types.
import type { Sql, Token, Value } from '../../kernel/sql/sql.js';
import { qualifiedName } from './schema/ddl.js';
import type { TableDeclaration } from './schema/tables.js';

const collectNothing = (): void => {};

/** Text per dialect. */
function texts(postgres: string, sqlite: string): Token {
  return {
    shape: `texts:${postgres};${sqlite};`,
    write: (out) => out.text(out.dialect.name === 'postgres' ? postgres : sqlite),
    collect: collectNothing,
  };
}

/** A parameter between two texts per dialect. */
function parameter(value: Value, postgres: readonly [string, string], sqlite: readonly [string, string]): Token {
  return {
    shape: `parameter:${postgres.join('?')};${sqlite.join('?')};`,
    write(out) {
      const [before, after] = out.dialect.name === 'postgres' ? postgres : sqlite;
      out.text(before);
      out.placeholder();
      out.text(after);
    },
    collect: (values) => values.push(value),
  };
}

const SQLITE_NOW = `CAST(unixepoch('subsec') * 1000 AS INTEGER)`;

/** The qualified name of a table of the outbox. */
export function tableToken(table: TableDeclaration): Token {
  const name = qualifiedName(table);
  return texts(name, name);
}

/** The server's clock, which goes on during a transaction. */
export const now: Token = texts('clock_timestamp()', SQLITE_NOW);

/** A time from now, or before now. */
export function fromNow(delayMs: number): Token {
  return parameter(
    delayMs,
    [`(clock_timestamp() + `, `::float8 * INTERVAL '1 millisecond')`],
    [`(${SQLITE_NOW} + `, ')'],
  );
}

/** A time by the number of milliseconds since the epoch. */
export function atTime(epochMs: number): Token {
  return parameter(epochMs, ['to_timestamp(', '::float8 / 1000.0)'], ['', '']);
}

/** A time as the number of milliseconds since the epoch. Not as an integer: some drivers of SQLite fail on those above 2^53. */
export function milliseconds(column: string): Token {
  return texts(`(EXTRACT(EPOCH FROM ${column}) * 1000)::float8`, `CAST(${column} AS REAL)`);
}

/** A time of a `rows` list, which holds it in epoch milliseconds. */
export function timeOf(column: string): Token {
  return texts(`to_timestamp(${column} / 1000.0)`, column);
}

/** A time from now, by the milliseconds of a `rows` list. */
export function fromNowBy(column: string): Token {
  return texts(`(clock_timestamp() + ${column} * INTERVAL '1 millisecond')`, `(${SQLITE_NOW} + ${column})`);
}

export function uuid(value: string): Token {
  return parameter(value, ['', '::uuid'], ['', '']);
}

export function uuidOf(column: string): Token {
  return texts(`${column}::uuid`, column);
}

export function text(value: string | null): Token {
  return parameter(value, ['', '::text'], ['', '']);
}

export function bigint(value: number | bigint | string | null): Token {
  return parameter(value, ['', '::int8'], ['', '']);
}

/** A count with a number added, or as it is if it is as large as a BIGINT can be. */
export function increased(column: string, by = '1'): Token {
  const text = `CASE WHEN ${column} = 9223372036854775807 THEN ${column} ELSE ${column} + ${by} END`;
  return texts(text, text);
}

/** Bytes of a `rows` list, from a column of text or else one of hexadecimal digits. */
export function bytesOf(textColumn: string, hexColumn: string): Token {
  return texts(
    `COALESCE(decode(${hexColumn}, 'hex'), convert_to(${textColumn}, 'UTF8'))`,
    `COALESCE(unhex(${hexColumn}), CAST(${textColumn} AS BLOB))`,
  );
}

export function asText(column: string): Token {
  return texts(`${column}::text`, `CAST(${column} AS TEXT)`);
}

/** The server's clock when the statement began. Unlike `now` it can bound an index scan. */
export const statementNow: Token = texts('statement_timestamp()', SQLITE_NOW);

export function statementNowMinus(ms: number): Token {
  return parameter(
    ms,
    [`(statement_timestamp() - `, `::float8 * INTERVAL '1 millisecond')`],
    [`(${SQLITE_NOW} - `, ')'],
  );
}

/** `= any of the rows`. On Postgres as an array: a join with a subquery of unknown size would read the whole table. */
export function anyOf(query: Sql): Token {
  return {
    shape: `any:${query.shape}`,
    write(out) {
      out.text(out.dialect.name === 'postgres' ? '= ANY(ARRAY(' : 'IN (');
      query.write(out);
      out.text(out.dialect.name === 'postgres' ? '))' : ')');
    },
    collect: (values, dialect) => query.collect(values, dialect),
  };
}

/** True for rows `d` after a position in the list of dead letters: the text of its time, and its ID. */
export function positionBefore(position: string, id: string): Token {
  return {
    shape: 'position;',
    write(out) {
      const isPostgres = out.dialect.name === 'postgres';
      out.text('(d.failed_at, d.id) < (');
      out.placeholder();
      out.text(isPostgres ? '::text::timestamptz, ' : ' + 0, ');
      out.placeholder();
      out.text(isPostgres ? '::text::int8)' : ' + 0)');
    },
    collect: (values) => void values.push(position, id),
  };
}
