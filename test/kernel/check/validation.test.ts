import { describe, expect, test } from 'vitest';
import { DBOSError, DBOSInvalidArgumentError } from '../../../src/kernel/errors/errors.js';
import {
  array,
  asArray,
  boolean,
  type Check,
  date,
  filledName,
  filledString,
  func,
  integer,
  jsonObject,
  mapOf,
  messageOf,
  nearest,
  nullable,
  nullish,
  number,
  objectWith,
  oneOf,
  oneOrMany,
  optional,
  parseTimestamp,
  positiveInteger,
  positiveNumber,
  readJSONObject,
  readJSONPattern,
  record,
  shown,
  storableName,
  string,
  timestamp,
} from '../../../src/kernel/check/validation.js';

/** The message of the refusal, or what was read. */
function attempt(check: Check<unknown>, value: unknown): unknown {
  try {
    return check.read(value, 'options.x');
  } catch (error) {
    expect(error).toBeInstanceOf(DBOSInvalidArgumentError);
    expect(error).toBeInstanceOf(DBOSError);
    return (error as Error).message.replace(/^options\.x/, '…');
  }
}

const circle: Record<string, unknown> = {};
circle['self'] = circle;

describe('a check of a single value', () => {
  test.each<[string, Check<unknown>, unknown[]]>([
    ['string', string(), ['', 'a', 'é😀']],
    ['string of a length', string({ min: 1, max: 2 }), ['a', 'ab']],
    ['filled string', filledString, ['a', ' a ']],
    ['name', storableName, ['', 'a'.repeat(1024), '€'.repeat(341)]],
    ['filled name', filledName, ['a']],
    ['integer', integer(), [0, 7, Number.MAX_SAFE_INTEGER]],
    ['integer in a range', integer({ min: -1, max: 1 }), [-1, 0, 1]],
    ['number', number(), [0, 0.5]],
    ['positive number', positiveNumber, [0.1, 1e300]],
    ['positive integer', positiveInteger, [1]],
    ['boolean', boolean, [true, false]],
    ['choice', oneOf(['a', 'b']), ['a', 'b']],
    ['timestamp', timestamp, ['2026-01-31', '2026-01-31T12:00Z', '2026-01-31 12:00:00.5+02:00', '2024-02-29']],
    ['date', date, [new Date(0)]],
    ['function', func, [() => 1, class {}]],
    ['object with methods', objectWith('a'), [{ a() {} }]],
  ])('%s accepts what it wants', (_, check, values) => {
    for (const value of values) expect(attempt(check, value)).toBe(value);
  });

  test.each<[Check<unknown>, unknown, string]>([
    [string(), 5, '… must be a string, but is 5.'],
    [string(), undefined, '… must be a string, but is undefined.'],
    [string({ min: 1 }), '', '… must not be empty.'],
    [string({ max: 2 }), 'abc', '… must have at most 2 characters, but has 3.'],
    [string(), 'a\0', '… must not contain a NUL character, but is "a\\u0000".'],
    [string(), 'a\ud800', '… must not contain half of a surrogate pair, but is "a\\ud800".'],
    [filledString, '  ', '… must not be empty.'],
    [filledString, null, '… must be a non-empty string, but is null.'],
    [storableName, 'a'.repeat(1025), '… must not be longer than 1024 bytes. Put long texts into the value.'],
    [storableName, '€'.repeat(342), '… must not be longer than 1024 bytes. Put long texts into the value.'],
    [storableName, ['a'], '… must be a string, but is an array.'],
    [filledName, ' ', '… must not be empty.'],
    [integer(), 1.5, '… must be an integer of at least 0, but is 1.5.'],
    [integer(), NaN, '… must be an integer of at least 0, but is NaN.'],
    [integer(), '5', '… must be an integer of at least 0, but is "5".'],
    [integer({ min: 1, max: 9 }), 10, '… must be an integer from 1 to 9, but is 10.'],
    [number({ min: 1, max: 9 }), Infinity, '… must be a number from 1 to 9, but is Infinity.'],
    [number(), 5n, '… must be a number of at least 0, but is 5n.'],
    [positiveNumber, 0, '… must be a positive finite number, but is 0.'],
    [positiveInteger, 0.5, '… must be a positive integer, but is 0.5.'],
    [boolean, 'true', '… must be true or false, but is "true".'],
    [oneOf(['a', 'b']), 'c', '… must be one of a, b, but is "c".'],
    [
      timestamp,
      '2026-02-30',
      '… must be a time in RFC 3339 with its zone, such as 2026-01-31T12:00:00Z, but is "2026-02-30".',
    ],
    [date, new Date(NaN), '… must be a valid Date, but is an object.'],
    [func, 'f', '… must be a function, but is "f".'],
    [objectWith('a', 'b'), { a() {} }, '… must be an object with the methods a, b, but is an object.'],
    [objectWith(), null, '… must be an object, but is null.'],
  ])('refuses another one, case %#', (check, value, message) => {
    expect(attempt(check, value)).toBe(message);
  });

  test('a timestamp is read as epoch milliseconds', () => {
    expect(parseTimestamp('2026-01-31 12:00:00+01:00')).toBe(Date.UTC(2026, 0, 31, 11));
  });
});

describe('a check that is made of others', () => {
  const options = record({
    limit: optional(integer({ min: 1 })),
    status: nullish(oneOrMany(oneOf(['OPEN', 'DONE']))),
    name: string(),
    retry: optional(record({ max: integer() }, { unknown: 'ignore' })),
  });

  test('accepts a record, and gives the same object', () => {
    const given = { name: 'n', status: null, limit: undefined, retry: { max: 1, other: 2 } };

    expect(options.read(given, 'options')).toBe(given);
  });

  test.each<[unknown, string, string]>([
    [5, 'options must be an object, but is 5.', 'options'],
    [[], 'options must be an object, but is an array.', 'options'],
    [{}, 'options.name is missing; it must be a string.', 'options.name'],
    [{ name: 'n', limit: 0 }, 'options.limit must be an integer of at least 1, but is 0.', 'options.limit'],
    [{ name: 'n', limit: null }, 'options.limit must be an integer of at least 1, but is null.', 'options.limit'],
    [
      { name: 'n', status: ['OPEN', 'GONE'] },
      'options.status[1] must be one of OPEN, DONE, but is "GONE".',
      'options.status[1]',
    ],
    [
      { name: 'n', retry: {} },
      'options.retry.max is missing; it must be an integer of at least 0.',
      'options.retry.max',
    ],
    [{ name: 'n', limt: 1 }, 'options has an unknown field "limt". Did you mean "limit"?', 'options'],
    [
      { name: 'n', 'a\0': 1 },
      'options has an unknown field "a\\u0000". Known fields: limit, status, name, retry.',
      'options',
    ],
    [JSON.parse('{"name":"n","__proto__":1}'), expect.stringContaining('unknown field "__proto__"'), 'options'],
  ])('names the part that is wrong, case %#', (value, message, argument) => {
    expect(() => options.read(value, 'options')).toThrow(
      expect.objectContaining({ name: 'DBOSInvalidArgumentError', code: 'INVALID_ARGUMENT', message, argument }),
    );
  });

  test('an array has bounds', () => {
    expect(attempt(array(string(), { min: 1, max: 2 }), [])).toBe('… must not be empty.');
    expect(attempt(array(string(), { min: 1, max: 2 }), ['a', 'b', 'c'])).toBe(
      '… must have from 1 to 2 elements, but has 3.',
    );
    expect(attempt(array(string(), { min: 2 }), ['a'])).toBe('… must have at least 2 elements, but has 1.');
    expect(attempt(array(nullable(string())), ['a', null, 5])).toBe('…[2] must be a string, but is 5.');
  });

  test('a map names its key', () => {
    expect(attempt(mapOf(boolean), { 'a b': 1 })).toBe('…["a b"] must be true or false, but is 1.');
    expect(attempt(mapOf(boolean), { a: true })).toEqual({ a: true });
  });

  test('one value or many are an array', () => {
    expect([asArray('a'), asArray(['a', 'b']), asArray(null), asArray(undefined)]).toEqual([
      ['a'],
      ['a', 'b'],
      undefined,
      undefined,
    ]);
  });

  test('describes itself as JSON Schema', () => {
    expect(record({ a: optional(integer({ max: 5 }).about('How many.')), b: boolean.named('Flag') }).schema).toEqual({
      type: 'object',
      properties: {
        a: { type: 'integer', minimum: 0, maximum: 5, description: 'How many.' },
        b: { $ref: '#/components/schemas/Flag' },
      },
      required: ['b'],
      additionalProperties: false,
    });
  });

  test('a path at the root has no leading dot, and a value can be kept out of the message', () => {
    const problem = record({ password: integer() }).find({ password: 'secret' });

    expect(problem && messageOf(problem, '', () => undefined)).toBe('password must be an integer of at least 0.');
  });
});

describe('JSON', () => {
  test('is copied as it will be stored', () => {
    expect(readJSONObject({ at: new Date(0), empty: {}, list: [1, null, undefined] }, 'a')).toEqual({
      at: '1970-01-01T00:00:00.000Z',
      empty: {},
      list: [1, null, null],
    });
  });

  test.each<[unknown, string]>([
    [[1], 'a must be an object, but is an array.'],
    [circle, 'a cannot be written as JSON.'],
    [{ n: 1n }, 'a cannot be written as JSON.'],
    [{ b: { cb() {} } }, 'a.b.cb must be a JSON value, but is a function.'],
    [{ b: [Symbol('s')] }, 'a.b[0] must be a JSON value, but is a symbol.'],
    [{ b: new Map([[1, 2]]) }, 'a.b must be a JSON value, but is of the type Map.'],
    [new Headers(), 'a must be a JSON value, but is of the type Headers.'],
    [{ toJSON: () => [1] }, 'a must be an object, but is an array.'],
    [{ toJSON: () => undefined }, 'a cannot be written as JSON.'],
    [{ b: ['\0'] }, 'a.b[0] must not contain a NUL character, but is "\\u0000".'],
    [{ '\0': 1 }, 'a["\\u0000"] must not contain a NUL character, but is "\\u0000".'],
  ])('refuses what cannot be stored, case %#', (value, message) => {
    expect(() => readJSONObject(value, 'a')).toThrow(message);
  });

  test('that is nested too deeply is refused without overflowing the stack', () => {
    let deep: unknown = 1;
    for (let level = 0; level < 100_000; level += 1) deep = [deep];

    expect(attempt(jsonObject, { deep })).toMatch(/nested more than 500 levels/);
  });

  test('a pattern is bounded', () => {
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`k${index}`, 1]));

    expect(() => readJSONPattern(many, 'a')).toThrow('a must have at most 200 values in 20 levels.');
    expect(readJSONPattern({ a: 1 }, 'a')).toEqual({ a: 1 });
  });
});

describe('a value in a message', () => {
  test.each<[unknown, string]>([
    ['a"b', '"a\\"b"'],
    ['x'.repeat(200), `"${'x'.repeat(79)}…`],
    ['\u001b[31m\u202e', '"\\u001b[31m\\u202e"'],
    [Symbol('s'), 'a symbol'],
    [() => 1, 'a function'],
    [-0.5, '-0.5'],
    [10n ** 100n, `1${'0'.repeat(79)}…`],
    [
      new Proxy(
        {},
        {
          get: () => {
            throw new Error('touched');
          },
        },
      ),
      'an object',
    ],
  ])('is short and harmless, case %#', (value, text) => {
    expect(shown(value)).toBe(text);
  });
});

describe('a suggestion', () => {
  test.each([
    ['concurency', 'concurrency'],
    ['workflowId', 'workflowID'],
    ['retires', 'retries'],
    ['colour', undefined],
    ['x'.repeat(1_000_000), undefined],
  ])('for %.20s', (written, meant) => {
    expect(nearest(written, ['concurrency', 'workflowID', 'retries'])).toBe(meant);
  });
});
