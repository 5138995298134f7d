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
      values.push(JSON.stringify(list.map(toJSONValue)));
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
      values.push(JSON.stringify(data.map((row) => toObject(columns, row))));
    },
  };
}

/** Without nulls: a missing column is null too, and most columns of a new row are. */
function toObject(columns: readonly { readonly name: string }[], row: readonly Value[]): Record<string, Value> {
  const object: Record<string, Value> = {};
  for (const [index, { name }] of columns.entries()) {
    const value = row[index];
    if (value != null) object[name] = toJSONValue(value);
  }
  return object;
}

/** Converts what JSON cannot hold beforehand: a replacer would be called for every value. */
function toJSONValue(value: Value): Value {
  return typeof value === 'bigint' ? value.toString() : value;
}
