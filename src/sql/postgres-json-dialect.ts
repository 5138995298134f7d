// The Postgres dialect for connections that are not ours. Lists are sent as JSON text, which every client can bind; only
// `pg` can bind the binary arrays of the plain dialect.
import { type PostgresDialectOptions, postgresDialect } from './postgres-dialect.js';
import { type ColumnType, type Dialect, quoteIdentifier, type Rows, type Value } from './sql.js';

const TYPES: Readonly<Record<ColumnType, string>> = {
  text: 'text',
  int: 'int4',
  bigint: 'int8',
  float: 'float8',
  bool: 'bool',
  json: 'jsonb',
  numeric: 'numeric',
};

export function postgresJSONDialect(options: PostgresDialectOptions): Dialect {
  const plain = postgresDialect(options);
  return {
    ...plain,
    texts: new WeakMap(),
    writeOneOf(out, type) {
      out.text(`= ANY(ARRAY(SELECT value::${TYPES[type]} FROM json_array_elements_text(`);
      out.placeholder();
      out.text('::text::json)))');
    },
    collectOneOf(values, list) {
      values.push(toJSON(list));
    },
    writeRows(out, alias, columns, isSingle) {
      if (isSingle) return plain.writeRows(out, alias, columns, true);
      const names = columns.map(({ name }) => quoteIdentifier(name));
      // JSON columns hold JSON in a string, which the cast parses.
      const selected = columns.map(({ type }, index) => `${names[index]}${type === 'json' ? '::jsonb' : ''}`);
      const declared = columns.map(({ type }, index) => `${names[index]} ${type === 'json' ? 'text' : TYPES[type]}`);
      out.text(`(SELECT ${selected.join(', ')} FROM json_to_recordset(`);
      out.placeholder();
      out.text(`::text::json) AS given(${declared.join(', ')})) AS ${quoteIdentifier(alias)}`);
    },
    collectRows(values, columns, data: Rows) {
      if (data.length === 1) return plain.collectRows(values, columns, data);
      values.push(
        toJSON(data.map((row) => Object.fromEntries(columns.map(({ name }, index) => [name, row[index] ?? null])))),
      );
    },
  };
}

function toJSON(list: readonly (Value | Readonly<Record<string, Value>>)[]): string {
  return JSON.stringify(list, (_key, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
}
