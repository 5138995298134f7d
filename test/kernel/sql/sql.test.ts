import { describe, expect, test } from 'vitest';
import { encodeArray, postgresDialect } from '../../../src/kernel/sql/postgres-dialect.js';
import { ident, lock, nowMs, oneOf, render, rows, sql, table } from '../../../src/kernel/sql/sql.js';
import { sqliteDialect } from '../../../src/kernel/sql/sqlite-dialect.js';

const postgres = postgresDialect({ schema: 'dbos' });
const sqlite = sqliteDialect();
const COLUMNS = [
  { name: 'id', type: 'text' },
  { name: 'n', type: 'int' },
] as const;

describe('sql', () => {
  test('values become parameters, never text', () => {
    const statement = sql`SELECT * FROM t WHERE a = ${"'; DROP TABLE t; --"} AND b = ${7} AND c = ${undefined}`;

    expect(render(statement, postgres)).toEqual({
      text: 'SELECT * FROM t WHERE a = $1 AND b = $2 AND c = $3',
      values: ["'; DROP TABLE t; --", 7, null],
    });
    expect(render(statement, sqlite).text).toBe('SELECT * FROM t WHERE a = ? AND b = ? AND c = ?');
  });

  test('parameters are numbered through nested fragments', () => {
    const condition = sql`x = ${1}`;
    const statement = sql`SELECT ${0} WHERE ${condition} AND y = ${2}`;

    expect(render(statement, postgres)).toEqual({ text: 'SELECT $1 WHERE x = $2 AND y = $3', values: [0, 1, 2] });
  });

  test('one place in the code with different tokens gives different texts', () => {
    const count = (name: string, condition: ReturnType<typeof sql>) =>
      sql`SELECT 1 FROM ${table(name)} WHERE ${condition}`;

    const texts = [
      render(count('a', sql`x = ${1}`), sqlite).text,
      render(count('b', sql`x = ${1}`), sqlite).text,
      render(count('a', sql`y = ${1}`), sqlite).text,
      render(count('a', sql`x = ${2}`), sqlite).text,
    ];

    expect(texts).toEqual([
      'SELECT 1 FROM "a" WHERE x = ?',
      'SELECT 1 FROM "b" WHERE x = ?',
      'SELECT 1 FROM "a" WHERE y = ?',
      'SELECT 1 FROM "a" WHERE x = ?',
    ]);
  });

  test('tables and identifiers are quoted', () => {
    const strange = postgresDialect({ schema: 'we"ird' });

    expect(render(sql`${table('x')} ${ident('a"b')}`, strange).text).toBe('"we""ird"."x" "a""b"');
    expect(render(sql`${table('x')}`, sqlite).text).toBe('"x"');
  });

  test('the text is the same for any number of rows but one', () => {
    const insert = (count: number) =>
      sql`SELECT r.id FROM ${rows(
        'r',
        COLUMNS,
        Array.from({ length: count }, (_, n) => [`id${n}`, n]),
      )}`;

    for (const dialect of [postgres, sqlite]) {
      const texts = [0, 2, 3, 500].map((count) => render(insert(count), dialect).text);
      expect(new Set(texts).size).toBe(1);
      expect(render(insert(1), dialect).text).not.toBe(texts[0]);
      expect(render(insert(1), dialect).values).toEqual(['id0', 0]);
    }
  });

  test('oneOf binds one parameter however many values there are', () => {
    const find = (ids: string[]) => sql`SELECT 1 WHERE id ${oneOf(ids)}`;

    expect(render(find(['a', 'b']), sqlite)).toEqual({
      text: 'SELECT 1 WHERE id IN (SELECT value FROM json_each(?))',
      values: ['["a","b"]'],
    });
    expect(render(find([]), postgres).text).toBe('SELECT 1 WHERE id = ANY($1::text[])');
  });

  test('a lock is written on Postgres and left out on SQLite', () => {
    expect(render(sql`SELECT 1 FROM w ${lock('skip', 'w')}`, postgres).text).toBe(
      'SELECT 1 FROM w FOR NO KEY UPDATE OF "w" SKIP LOCKED',
    );
    expect(render(sql`SELECT 1 FROM w ${lock('share', 'w')}`, sqlite).text).toBe('SELECT 1 FROM w ');
  });

  test('a clock driven by a test becomes a parameter, read anew each time', () => {
    let now = 1000;
    const dialect = postgresDialect({ schema: 'dbos', now: () => now });
    const statement = sql`SELECT ${nowMs}`;

    expect(render(statement, dialect)).toEqual({ text: 'SELECT $1::bigint', values: [1000] });
    now = 2000;
    expect(render(statement, dialect).values).toEqual([2000]);
  });

  test('an array is encoded in the binary form of Postgres', () => {
    const bytes = Buffer.from(encodeArray(['é', null], 'text'));

    // dimensions, has-null flag, element type, length, lower bound; then length and bytes of each element
    expect(bytes.toString('hex')).toBe(
      '00000001' + '00000001' + '00000019' + '00000002' + '00000001' + '00000002' + 'c3a9' + 'ffffffff',
    );
    expect(Buffer.from(encodeArray([], 'int')).toString('hex')).toBe('00000000' + '00000000' + '00000017');
  });

  test('8-byte integers are exact, whatever their sign and size', () => {
    const values = [
      0,
      1,
      -1,
      2 ** 31,
      -(2 ** 31),
      2 ** 32,
      -(2 ** 32) - 1,
      1_763_000_000_123,
      2 ** 53 - 1,
      1 - 2 ** 53,
    ];
    const given = [...values, 2 ** 60, 2n ** 63n - 1n];

    const bytes = Buffer.from(encodeArray(given, 'bigint'));

    expect(given.map((_, index) => bytes.readBigInt64BE(24 + 12 * index))).toEqual(given.map(BigInt));
    expect(() => encodeArray([1.5], 'bigint')).toThrow(RangeError);
  });
});
