// The Postgres dialect. Lists are sent as arrays in Postgres' binary format, which needs no escaping.
import type { ColumnType, Dialect, Value } from './sql.js';
import { quoteIdentifier } from './sql.js';

export interface PostgresDialectOptions {
  readonly schema: string;
  /** Replaces the database clock, for tests that control time. */
  readonly now?: () => number;
  /** False for servers without them. */
  readonly hasSettings?: boolean;
  /** Without it, a statement waits for rows that others have locked, and then takes what it still finds. */
  readonly hasSkipLocked?: boolean;
}

/** A type's name, the cast of an array of it, and the OID of the array's elements on the wire. */
interface WireType {
  readonly name: string;
  readonly arrayCast: string;
  readonly elementOID: number;
}

const TEXT_OID = 25;
const INT4_OID = 23;
const INT8_OID = 20;
const FLOAT8_OID = 701;
const BOOL_OID = 16;

const WIRE_TYPES: Readonly<Record<ColumnType, WireType>> = {
  text: { name: 'text', arrayCast: 'text[]', elementOID: TEXT_OID },
  int: { name: 'int4', arrayCast: 'int4[]', elementOID: INT4_OID },
  bigint: { name: 'int8', arrayCast: 'int8[]', elementOID: INT8_OID },
  float: { name: 'float8', arrayCast: 'float8[]', elementOID: FLOAT8_OID },
  bool: { name: 'bool', arrayCast: 'bool[]', elementOID: BOOL_OID },
  json: { name: 'jsonb', arrayCast: 'text[]::jsonb[]', elementOID: TEXT_OID },
  numeric: { name: 'numeric', arrayCast: 'text[]::numeric[]', elementOID: TEXT_OID },
};

export function postgresDialect(options: PostgresDialectOptions): Dialect {
  const schema = quoteIdentifier(options.schema);
  const skip = (options.hasSkipLocked ?? true) ? ' SKIP LOCKED' : '';
  const dialect: Dialect = {
    name: 'postgres',
    texts: new WeakMap(),
    placeholder: (index) => `$${index}`,
    table: (name) => dialect.lacking?.tables.get(name) ?? `${schema}.${quoteIdentifier(name)}`,
    writeNow(out) {
      if (options.now) {
        out.placeholder();
        out.text('::bigint');
      } else {
        out.text('FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::bigint');
      }
    },
    collectNow(values) {
      if (options.now) values.push(options.now());
    },
    writeOneOf(out, type) {
      out.text('= ANY(');
      out.placeholder();
      out.text(`::${WIRE_TYPES[type].arrayCast})`);
    },
    collectOneOf(values, list, type) {
      values.push(encodeArray(list, type));
    },
    writeRows(out, alias, columns, isSingle) {
      // Single rows are by far the most frequent; as plain parameters they cost the server a third less.
      out.text(isSingle ? '(SELECT ' : 'unnest(');
      columns.forEach(({ type }, index) => {
        if (index > 0) out.text(', ');
        // A subquery hides from the planner how many rows there are. If it knew of a few, it would plan each execution for
        // them, which takes as long as the execution.
        const isHidden = !isSingle && index === 0;
        if (isHidden) out.text('(SELECT ');
        out.placeholder();
        out.text(`::${isSingle ? WIRE_TYPES[type].name : WIRE_TYPES[type].arrayCast}`);
        if (isHidden) out.text(')');
      });
      const names = columns.map((column) => quoteIdentifier(column.name)).join(', ');
      out.text(`) AS ${quoteIdentifier(alias)}(${names})`);
    },
    collectRows(values, columns, data) {
      if (data.length === 1) values.push(...(data[0] ?? []));
      else columns.forEach(({ type }, index) => values.push(encodeColumn(data, index, type)));
    },
    writeAdvisoryLock(out, isShared) {
      out.text(`pg_advisory_xact_lock${isShared ? '_shared' : ''}(hashtextextended(`);
      out.placeholder();
      out.text('::text, 0))');
    },
    collectAdvisoryLock(values, name) {
      values.push(`everstep.${options.schema}.${name}`);
    },
    writeStartsWith(out, column) {
      // If the planner knows the pattern, LIKE can use an index with text_pattern_ops, or any index with the C collation.
      out.text(`${column} LIKE `);
      out.placeholder();
    },
    collectStartsWith(values, prefix) {
      values.push(`${prefix.replace(/[\\%_]/g, '\\$&')}%`);
    },
    writeContains(out, column) {
      out.text(`${column} @> `);
      out.placeholder();
      out.text('::jsonb');
    },
    collectContains(values, pattern) {
      values.push(JSON.stringify(pattern));
    },
    writeMerge(out, column) {
      out.text(`((COALESCE(${column}, '{}'::jsonb) || `);
      out.placeholder();
      out.text('::jsonb) - ');
      out.placeholder();
      out.text('::text[])');
    },
    collectMerge(values, change) {
      const members = Object.entries(change);
      const set = members.filter(([, value]) => value !== null);
      const removed = members.filter(([, value]) => value === null);
      values.push(JSON.stringify(Object.fromEntries(set)));
      values.push(
        encodeArray(
          removed.map(([key]) => key),
          'text',
        ),
      );
    },
    bytewise: (column) => `${column} COLLATE "C"`,
    needsIndexHints: false,
    indexHint: () => '',
    hasSettings: options.hasSettings ?? true,
    lock(mode, alias) {
      const of = `OF ${quoteIdentifier(alias)}`;
      if (mode === 'share') return `FOR SHARE ${of}`;
      if (mode === 'skip-keyed') return `FOR UPDATE ${of}${skip}`;
      // FOR UPDATE conflicts with the key lock of a message being sent to the row, and would skip it.
      if (mode === 'skip') return `FOR NO KEY UPDATE ${of}${skip}`;
      return `FOR UPDATE ${of}`;
    },
  };
  return dialect;
}

/** A column of rows. Of a list of columns, `unnest` fills up the shorter ones with NULL: those without values can be empty. */
function encodeColumn(data: readonly (readonly Value[])[], index: number, type: ColumnType): Uint8Array {
  const values = data.map((row) => row[index] ?? null);
  // The first one says how many rows there are.
  return encodeArray(index > 0 && values.every((value) => value === null) ? [] : values, type);
}

/** A one-dimensional array in Postgres' binary format. */
export function encodeArray(values: readonly Value[], type: ColumnType): Uint8Array {
  const { elementOID } = WIRE_TYPES[type];
  const { length } = values;
  const headerSize = length === 0 ? 12 : 20;
  const sizes = new Int32Array(length);
  let [total, hasNulls] = [headerSize, false];
  for (let index = 0; index < length; index += 1) {
    const size = elementSize(values[index] as Value, elementOID);
    sizes[index] = size;
    if (size < 0) hasNulls = true;
    total += 4 + Math.max(size, 0);
  }
  const buffer = Buffer.allocUnsafe(total);
  buffer.writeInt32BE(length === 0 ? 0 : 1, 0);
  buffer.writeInt32BE(hasNulls ? 1 : 0, 4);
  buffer.writeInt32BE(elementOID, 8);
  if (length === 0) return buffer;
  buffer.writeInt32BE(length, 12);
  buffer.writeInt32BE(1, 16);
  let offset = headerSize;
  for (let index = 0; index < length; index += 1) {
    const size = sizes[index] as number;
    buffer.writeInt32BE(size, offset);
    offset += 4;
    if (size < 0) continue;
    writeElement(buffer, offset, values[index] as Value, elementOID);
    offset += size;
  }
  return buffer;
}

/** The element's length in bytes; -1 for NULL. */
function elementSize(value: Value, elementOID: number): number {
  if (value === null) return -1;
  if (elementOID === TEXT_OID) return Buffer.byteLength(String(value));
  if (elementOID === BOOL_OID) return 1;
  return elementOID === INT4_OID ? 4 : 8;
}

function writeElement(buffer: Buffer, offset: number, value: Value, elementOID: number): void {
  if (elementOID === TEXT_OID) buffer.write(String(value), offset, 'utf8');
  else if (elementOID === BOOL_OID) buffer.writeUInt8(value ? 1 : 0, offset);
  else if (elementOID === INT4_OID) buffer.writeInt32BE(Number(value), offset);
  else if (elementOID === INT8_OID) writeInt8(buffer, offset, value);
  else buffer.writeDoubleBE(Number(value), offset);
}

/** A time or a count is a safe integer, which needs no BigInt: writing one makes several. */
function writeInt8(buffer: Buffer, offset: number, value: Value): void {
  if (!Number.isSafeInteger(value)) {
    buffer.writeBigInt64BE(BigInt(value as number), offset);
    return;
  }
  const high = Math.floor((value as number) / 2 ** 32);
  buffer.writeInt32BE(high, offset);
  buffer.writeUInt32BE((value as number) - high * 2 ** 32, offset + 4);
}
