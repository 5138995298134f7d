// The SQLite dialect. A list is sent as one JSON parameter.
import type { Dialect, Value } from './sql.js';
import { quoteIdentifier } from './sql.js';
import { endOfPrefix } from './matching.js';
import { collectContains, collectMerge, writeContains, writeMerge } from './sqlite-json.js';

export interface SqliteDialectOptions {
  /** Replaces the database clock, for tests that control time. */
  readonly now?: () => number;
}

export function sqliteDialect(options: SqliteDialectOptions = {}): Dialect {
  return {
    name: 'sqlite',
    texts: new WeakMap(),
    placeholder: () => '?',
    table: quoteIdentifier,
    writeNow(out) {
      if (options.now) out.placeholder();
      else out.text(`CAST(unixepoch('subsec') * 1000 AS INTEGER)`);
    },
    collectNow(values) {
      if (options.now) values.push(options.now());
    },
    writeOneOf(out) {
      out.text('IN (SELECT value FROM json_each(');
      out.placeholder();
      out.text('))');
    },
    collectOneOf(values, list) {
      values.push(jsonList(list));
    },
    writeRows(out, alias, columns, isSingle) {
      out.text('(SELECT ');
      columns.forEach((column, index) => {
        if (index > 0) out.text(', ');
        if (isSingle) out.placeholder();
        else out.text(`value ->> ${index}`);
        out.text(` AS ${quoteIdentifier(column.name)}`);
      });
      if (!isSingle) {
        out.text(' FROM json_each(');
        out.placeholder();
        out.text(')');
      }
      out.text(`) AS ${quoteIdentifier(alias)}`);
    },
    collectRows(values, _columns, data) {
      if (data.length === 1) values.push(...(data[0] ?? []));
      else values.push(jsonList(data));
    },
    writeAdvisoryLock: (out) => out.text('NULL'),
    collectAdvisoryLock: () => {},
    writeStartsWith(out, column) {
      out.text(`(${column} >= `);
      out.placeholder();
      out.text(` AND ${column} < `);
      out.placeholder();
      out.text(')');
    },
    collectStartsWith(values, prefix) {
      // A blob sorts after all text.
      values.push(prefix, endOfPrefix(prefix) ?? new Uint8Array());
    },
    writeContains,
    collectContains,
    writeMerge,
    collectMerge,
    bytewise: (column) => column,
    needsIndexHints: true,
    indexHint: (name) => `INDEXED BY ${quoteIdentifier(name)}`,
    hasSettings: false,
    lock: () => '',
  };
}

function jsonList(values: readonly (Value | readonly Value[])[]): string {
  return JSON.stringify(values, (_key, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
}
