// Describes a table that is partitioned by time, and writes the texts that depend on it. Postgres only.
import { quoteIdentifier, type Sql, sql, type Token } from '../../kernel/sql/sql.js';
import type { Range } from './periods.js';

export interface TableName {
  readonly tableName: string;
  /** Default: found by the search path. */
  readonly schema?: string | undefined;
}

export interface TimedTable extends TableName {
  /** The column that rows are partitioned by. */
  readonly column: string;
  /** Its type: TIMESTAMPTZ, or BIGINT with epoch milliseconds. */
  readonly unit: 'timestamptz' | 'milliseconds';
  /** The primary key. It contains the column. */
  readonly key: readonly string[];
  /** Statements that run first in a transaction that moves rows. */
  readonly preparing?: readonly string[];
  /** Statements for a new partition, given its name: what cannot be declared for the whole table. */
  readonly completing?: (partition: TableName) => readonly string[];
}

export function nameOf({ tableName, schema }: TableName): string {
  return schema === undefined ? quoteIdentifier(tableName) : `${quoteIdentifier(schema)}.${quoteIdentifier(tableName)}`;
}

export function literal(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

/** Text as a part of a statement: names, which are quoted, and literals. */
export function verbatim(text: string): Token {
  return { shape: `verbatim:${text};`, write: (out) => out.text(text), collect: () => {} };
}

/** The OID of the table, by its schema or the search path. */
export function regclassOf({ tableName, schema }: TableName): Sql {
  return schema === undefined
    ? sql`to_regclass(quote_ident(CAST(${tableName} AS TEXT)))`
    : sql`to_regclass(quote_ident(CAST(${schema} AS TEXT)) || '.' || quote_ident(CAST(${tableName} AS TEXT)))`;
}

/** A time as a value of the column. */
export function timeText({ unit }: Pick<TimedTable, 'unit'>, atMs: number): string {
  return unit === 'timestamptz' ? literal(new Date(atMs).toISOString()) : String(Math.trunc(atMs));
}

/** The bounds of a partition. An end that is infinite is open. */
export function rangeText(table: Pick<TimedTable, 'unit'>, { fromMs, toMs }: Range): string {
  const from = fromMs === -Infinity ? 'MINVALUE' : timeText(table, fromMs);
  const to = toMs === Infinity ? 'MAXVALUE' : timeText(table, toMs);
  return `FOR VALUES FROM (${from}) TO (${to})`;
}

/** A value of the column in epoch milliseconds. */
export function millisecondsText({ unit }: Pick<TimedTable, 'unit'>, value: string): string {
  return unit === 'timestamptz' ? `(EXTRACT(EPOCH FROM ${value}) * 1000)::float8` : `(${value})::float8`;
}
