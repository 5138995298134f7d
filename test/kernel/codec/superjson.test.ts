import * as fc from 'fast-check';
import { SuperJSON } from 'superjson';
import { describe, expect, test } from 'vitest';
import { SuperjsonFormat } from '../../../src/kernel/codec/superjson.js';
import { SerializationError, UnreadableValueError } from '../../../src/kernel/errors/errors.js';
import { findDifference, graphs, knownLeaves, withShared } from './graphs.js';

function setup() {
  const format = new SuperjsonFormat();
  const revive = (value: unknown): unknown => format.parse(format.stringify(value));
  return { format, revive };
}

const marked = (inner: string): string => `{${inner},"__dbos_serializer":"superjson"}`;

// Both directions of each are fixed: the peer has written and will read them.
const STORED: readonly (readonly [string, unknown, string])[] = [
  ['a number', 1, marked('"json":1')],
  ['null', null, marked('"json":null')],
  ['a text', 'x', marked('"json":"x"')],
  ['the arguments of a call', ['a', { b: 2 }], marked('"json":["a",{"b":2}]')],
  ['undefined', undefined, marked('"json":null,"meta":{"values":["undefined"]}')],
  ['a Date', new Date(0), marked('"json":"1970-01-01T00:00:00.000Z","meta":{"values":["Date"]}')],
  ['a Map', new Map([['k', 1]]), marked('"json":[["k",1]],"meta":{"values":["map"]}')],
  ['a Set', new Set([1, 2]), marked('"json":[1,2],"meta":{"values":["set"]}')],
  ['a BigInt', 12n, marked('"json":"12","meta":{"values":["bigint"]}')],
  ['a Buffer', Buffer.from('hi'), marked('"json":[104,105],"meta":{"values":[["custom","Buffer"]]}')],
  ['a nested undefined', { a: undefined }, marked('"json":{"a":null},"meta":{"values":{"a":["undefined"]}}')],
  ['negative zero', -0, marked('"json":"-0","meta":{"values":["number"]}')],
  ['an invalid Date', new Date(Number.NaN), marked('"json":"Invalid Date","meta":{"values":["Date"]}')],
  ['a typed array', Uint8Array.of(1, 2), marked('"json":[1,2],"meta":{"values":[["typed-array","Uint8Array"]]}')],
  [
    'special numbers in a typed array',
    Float64Array.of(Number.NaN, -0, 1.5),
    marked('"json":["NaN","-0","1.5"],"meta":{"values":[["typed-array","Float64Array"]]}'),
  ],
  [
    'a key with a dot above a Date',
    { 'a.b': new Date(0) },
    marked('"json":{"a.b":"1970-01-01T00:00:00.000Z"},"meta":{"values":{"a\\\\.b":["Date"]}}'),
  ],
  [
    'a key with a backslash above a Date',
    { 'a\\b': new Date(0) },
    marked('"json":{"a\\\\b":"1970-01-01T00:00:00.000Z"},"meta":{"values":{"a\\\\\\\\b":["Date"]},"v":1}'),
  ],
];

describe('the stored text', () => {
  test.each(STORED)('of %s is what the peer writes', (_name, value, text) => {
    expect(setup().format.stringify(value)).toBe(text);
  });

  test.each(STORED)('of %s is read back', (_name, value, text) => {
    const revived = setup().format.parse(text);

    expect(typeof value === 'object' && value !== null ? findDifference(value, revived) : undefined).toBeUndefined();
    expect(revived).toEqual(value);
  });

  test('of a shared object names both places', () => {
    const shared = { n: 1 };

    expect(setup().format.stringify([shared, shared])).toBe(
      marked('"json":[{"n":1},{"n":1}],"meta":{"referentialEqualities":{"0":["1"]}}'),
    );
  });

  test('is JSON without a raw NUL, whatever the texts in it hold', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.constantFrom('\u0000', '\ud800', '\udc00', ''), (text, odd) => {
        const value = { [`key ${text}`]: [text + odd, new Map([[odd + text, new Error(odd)]])] };
        const stored = setup().format.stringify(value);

        expect(stored.includes('\u0000')).toBe(false);
        expect(Buffer.from(stored, 'utf8').toString('utf8')).toBe(stored);
        expect(findDifference(value, setup().format.parse(stored))).toBeUndefined();
      }),
    );
  });

  test('of a function or a symbol reads as undefined', () => {
    const { format } = setup();

    expect(format.stringify(() => 1)).toBe('{"__dbos_serializer":"superjson"}');
    expect(format.parse('{"__dbos_serializer":"superjson"}')).toBeUndefined();
  });

  test('with a version, as a newer superjson writes it, is read the same', () => {
    const text = marked('"json":{"a":null},"meta":{"values":{"a":["undefined"]},"v":1}');

    expect(setup().format.parse(text)).toEqual({ a: undefined });
  });

  test('with unescaped backslashes, as an older superjson writes it, is read', () => {
    const text = marked('"json":{"a\\\\b":"1"},"meta":{"values":{"a\\\\b":["bigint"]}}');

    expect(setup().format.parse(text)).toEqual({ 'a\\b': 1n });
  });
});

describe('a value in the default format', () => {
  test('is revived the same, whatever superjson knows and however it is shared', () => {
    const kinds = ['array', 'object', 'map', 'set', 'error'] as const;
    const { revive } = setup();

    fc.assert(
      fc.property(graphs({ leaves: withShared(knownLeaves), kinds }), (value) => {
        expect(findDifference([value], [revive(value)])).toBeUndefined();
      }),
      { numRuns: 2000 },
    );
  });

  test('keeps the order of a Set whose element is shared with a shorter path', () => {
    const shared = { name: 'shared' };
    const value = { deep: new Set([shared, 'second']), shared };

    expect(findDifference(value, setup().revive(value))).toBeUndefined();
  });

  test('keeps identity when the shorter path of an outer object is found later', () => {
    const inner = { n: 1 };
    const outer = { inner, again: inner };
    const value = [{ deep: { outer } }, { outer }, inner];

    expect(findDifference(value, setup().revive(value))).toBeUndefined();
  });

  test('may contain itself through sets, maps and causes', () => {
    const set = new Set<unknown>();
    const map = new Map<unknown, unknown>();
    const error = new Error('outer');
    for (const element of [set, map, error, 'x']) set.add(element);
    map.set(map, set).set(error, error);
    error.cause = map;

    expect(findDifference(set, setup().revive(set))).toBeUndefined();
  });

  test('shares a Date that stands in two places', () => {
    const date = new Date(5);

    const revived = setup().revive({ a: date, b: [date] }) as { a: Date; b: Date[] };

    expect(revived.a).toEqual(date);
    expect(revived.b[0]).toBe(revived.a);
  });

  test('is what superjson itself reads', () => {
    const { format } = setup();
    const value = { a: [new Date(Number.NaN), Float32Array.of(Number.NaN, 1)], b: new Map([[1n, undefined]]), c: -0 };

    const revived = new SuperJSON().parse(format.stringify(value));

    expect(findDifference(value, revived)).toBeUndefined();
  });

  test('leaves out a function that stands in two places', () => {
    const run = () => 1;

    expect(setup().revive({ a: run, b: run, c: [run, run] })).toEqual({ c: [null, null] });
  });

  test('is refused with a key that could pollute a prototype', () => {
    expect(() => setup().format.stringify({ constructor: 1 })).toThrow(SerializationError);
  });
});

class Temperature {
  constructor(readonly kelvin: number) {}
  celsius(): number {
    return this.kelvin - 273;
  }
}

const temperatureRecipe = {
  name: 'Temperature',
  isApplicable: (value: unknown): value is Temperature => value instanceof Temperature,
  serialize: (value: Temperature) => ({ k: value.kelvin }),
  deserialize: (stored: { k: number }) => new Temperature(stored.k),
};

describe('a recipe', () => {
  test('keeps the class of a value, and shares one instance between places', () => {
    const { format, revive } = setup();
    format.registerRecipe(temperatureRecipe);
    const shared = new Temperature(300);

    const revived = revive({ now: shared, list: [shared, new Map([['x', new Temperature(5)]])] });

    expect(format.stringify(shared)).toBe(marked('"json":{"k":300},"meta":{"values":[["custom","Temperature"]]}'));
    expect(
      findDifference({ now: shared, list: [shared, new Map([['x', new Temperature(5)]])] }, revived),
    ).toBeUndefined();
    expect((revived as { now: Temperature }).now.celsius()).toBe(27);
  });

  test('may claim undefined', () => {
    const { format, revive } = setup();
    format.registerRecipe<undefined, string>({
      name: 'nothing',
      isApplicable: (value): value is undefined => value === undefined,
      serialize: () => 'nothing',
      deserialize: () => undefined,
    });

    expect(format.stringify(undefined)).not.toBe(setup().format.stringify(undefined));
    expect(revive(undefined)).toBeUndefined();
  });

  test('keeps a symbol', () => {
    const { format, revive } = setup();
    const RED = Symbol('red');
    format.registerRecipe<symbol, string>({
      name: 'color',
      isApplicable: (value): value is symbol => value === RED,
      serialize: () => 'red',
      deserialize: () => RED,
    });

    expect(revive({ paint: RED })).toEqual({ paint: RED });
  });

  test('of one instance is unknown to another, which says so', () => {
    const { format } = setup();
    format.registerRecipe(temperatureRecipe);
    const text = format.stringify([new Temperature(1)]);

    expect(() => setup().format.parse(text)).toThrow(UnreadableValueError);
    expect(() => setup().format.parse(text)).toThrow("custom named 'Temperature', which is not registered");
  });

  test('registered again replaces the first', () => {
    const { format, revive } = setup();
    format.registerRecipe({ ...temperatureRecipe, isApplicable: (_value): _value is Temperature => true });
    format.registerRecipe({ ...temperatureRecipe, serialize: (value) => ({ k: value.kelvin + 1 }) });

    expect(format.stringify({ a: 1 })).toBe(marked('"json":{"a":1}'));
    expect(revive(new Temperature(1))).toEqual(new Temperature(2));
    expect(revive(new Date(Number.NaN))).toEqual(new Date(Number.NaN));
  });

  test('has precedence over the own forms for invalid dates and special numbers', () => {
    const { format } = setup();
    format.registerRecipe<Date, string>({
      name: 'day',
      isApplicable: (value): value is Date => value instanceof Date,
      serialize: () => 'some day',
      deserialize: () => new Date(0),
    });

    expect(format.stringify(new Date(Number.NaN))).toBe(
      marked('"json":"some day","meta":{"values":[["custom","day"]]}'),
    );
  });

  test('that would lose its text inside a container is refused', () => {
    const { format } = setup();
    format.registerRecipe<Map<unknown, unknown>, string>({
      name: 'as text',
      isApplicable: (value): value is Map<unknown, unknown> => value instanceof Map,
      serialize: () => 'text',
      deserialize: () => new Map(),
    });

    expect(() => format.stringify(new Map())).toThrow("The serialization recipe 'as text' made a string");
  });
});

describe('reading', () => {
  test('no text gives null', () => {
    expect(setup().format.parse(null)).toBeNull();
    expect(setup().format.parse(undefined)).toBeNull();
  });

  test('a text without the marker reads the older form', () => {
    const text =
      '[{"dbos_type":"dbos_Date","dbos_data":"1970-01-01T00:00:00.005Z"},{"dbos_type":"dbos_BigInt","dbos_data":"12"},' +
      '{"type":"Buffer","data":[104,105]},{"a":{"json":1}}]';

    expect(setup().format.parse(text)).toEqual([new Date(5), 12n, Buffer.from('hi'), { a: { json: 1 } }]);
    expect(setup().format.parse('{"json":1,"meta":{"values":["Date"]}}')).toEqual({
      json: 1,
      meta: { values: ['Date'] },
    });
  });

  test.each([
    ['no JSON', 'not json at all'],
    ['an empty text', ''],
    ['a truncated text', '{"json":{"a":'],
    ['an unknown type', marked('"json":1,"meta":{"values":["quaternion"]}')],
    ['an unknown kind', marked('"json":1,"meta":{"values":[["class","Foo"]]}')],
    ['an unknown typed array', marked('"json":[1],"meta":{"values":[["typed-array","MyBytes"]]}')],
    ['a broken BigInt', marked('"json":"x","meta":{"values":["bigint"]}')],
    ['a Set that is no array', marked('"json":1,"meta":{"values":["set"]}')],
    ['types that are no tree', marked('"json":1,"meta":{"values":null}')],
    ['an older form with a broken BigInt', '{"dbos_type":"dbos_BigInt","dbos_data":"x"}'],
  ])('%s is refused as unreadable', (_name, text) => {
    expect(() => setup().format.parse(text)).toThrow(UnreadableValueError);
  });

  test('an unreadable text is not quoted beyond its first 80 characters', () => {
    const text = `not json ${'x'.repeat(100)}SECRET`;

    const error = catchError(() => setup().format.parse(text)) as UnreadableValueError;

    expect(error.message).toContain(text.slice(0, 80));
    expect(error.message).not.toContain(text.slice(0, 81));
    expect(error).toMatchObject({ format: 'js_superjson', code: 'UNREADABLE_VALUE' });
    expect(error.cause).toBeInstanceOf(SyntaxError);
  });

  test('a path into a prototype changes nothing', () => {
    const text = marked(
      '"json":{"a":{"x":1}},"meta":{"referentialEqualities":{"a":["__proto__.polluted","a.constructor.y"]}}',
    );

    expect(setup().format.parse(text)).toEqual({ a: { x: 1 } });
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
  });
});

function catchError(body: () => unknown): unknown {
  try {
    body();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}
