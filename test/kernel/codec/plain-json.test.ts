import * as fc from 'fast-check';
import { SuperJSON } from 'superjson';
import { describe, expect, test } from 'vitest';
import { copyIfPlain, NOT_PLAIN } from '../../../src/kernel/codec/plain-json.js';
import { SuperjsonFormat } from '../../../src/kernel/codec/superjson.js';
import { graphs, keys, Opaque, plainLeaves, trees, withShared } from './graphs.js';

/** What superjson itself writes, in the shared form: with the marker, without a version that says nothing. */
function textBySuperjson(value: unknown): string {
  const { json, meta } = new SuperJSON().serialize(value);
  const isVersionNeeded = JSON.stringify(meta ?? {}).includes('\\\\\\\\');
  const sharedMeta = meta && !isVersionNeeded ? { ...meta, v: undefined } : meta;
  return JSON.stringify({ json, meta: sharedMeta, __dbos_serializer: 'superjson' });
}

function outcome(encode: () => string): string {
  try {
    return encode();
  } catch (error) {
    // The codec has a text of its own for names that superjson refuses.
    return /__proto__|constructor|prototype/.test(String(error)) ? 'throws: the name' : `throws ${String(error)}`;
  }
}

class Money {
  constructor(readonly cents: number) {}
}

const shared = { a: 1 };
const circular: Record<string, unknown> = {};
circular.self = circular;

const AWKWARD_VALUES: readonly (readonly [string, unknown])[] = [
  ['negative zero', { n: -0 }],
  ['NaN', [Number.NaN]],
  ['infinities', [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]],
  ['undefined', undefined],
  ['a nested undefined', { a: undefined, b: [undefined] }],
  ['a hole in an array', Object.assign([1, 2, 3], { length: 5 })],
  ['a sparse array', [1, , 3]],
  ['an array with a named property', Object.assign([1], { name: 'x', when: undefined })],
  ['a match of a regular expression', /(?<word>\w+)/.exec('hello')],
  ['a symbol', Symbol('s')],
  ['a nested symbol', { a: Symbol('s'), b: [Symbol('s')] }],
  ['a symbol as key', { [Symbol('s')]: 1, a: 1 }],
  ['a function', () => 1],
  ['a nested function', { run: () => 1, list: [() => 1] }],
  ['an object used twice', { x: shared, y: [shared] }],
  ['an empty array used twice', [shared, shared]],
  ['a circle', circular],
  ['an instance of a class', { price: new Money(5) }],
  ['an object without prototype', Object.assign(Object.create(null) as object, { a: 1, b: { c: 2 } })],
  ['an object with a prototype of its own', Object.create({ inherited: 1 })],
  ['an own key __proto__', JSON.parse('{"__proto__":1}')],
  ['a nested key __proto__', { a: [JSON.parse('{"__proto__":{"x":1}}')] }],
  ['a key constructor', { constructor: 1 }],
  ['a key prototype', [{ prototype: 1 }]],
  ['keys with dots and backslashes', { 'a.b': { 'c\\d': 1 }, '\\': [] }],
  ['keys with dots and backslashes above a Date', { 'a.b': { 'c\\d': new Date(0), '\\.': { '.': 1n } } }],
  ['an own toJSON', { toJSON: () => 'short', a: 1 }],
  [
    'an inherited toJSON',
    {
      at: new (class {
        toJSON = () => ({ b: 1 });
      })(),
    },
  ],
  [
    'a getter',
    {
      get now() {
        return 5;
      },
    },
  ],
  ['a hidden property', Object.defineProperty({ a: 1 }, 'hidden', { value: new Date(0) })],
  ['boxed primitives', [new Number(1), new String('a'), new Boolean(false)]],
  ['the prototype of objects', [Object.prototype]],
  ['lone surrogates and NUL', ['\ud800', '\udfff\u0000', { '\u0000': '\ud83d' }]],
  ['number-like keys', { 10: 'a', 9: 'b', x: 'c' }],
];

describe('the fast path', () => {
  test.each(AWKWARD_VALUES)('writes what superjson writes, or fails as it fails: %s', (_name, value) => {
    const text = outcome(() => new SuperjsonFormat().stringify(value));

    expect(text).toBe(outcome(() => textBySuperjson(value)));
  });

  test('writes what superjson writes for any plain tree', () => {
    fc.assert(
      fc.property(trees({ leaves: plainLeaves, kinds: ['array', 'object'] }), (value) => {
        expect(copyIfPlain(value)).not.toBe(NOT_PLAIN);
        expect(new SuperjsonFormat().stringify(value)).toBe(textBySuperjson(value));
      }),
      { numRuns: 500 },
    );
  });

  test('writes what superjson writes for a mix of plain and awkward values', () => {
    const awkward = fc.constantFrom(...AWKWARD_VALUES.map(([, value]) => new Opaque(value)));
    const leaves = fc.oneof({ weight: 6, arbitrary: withShared(plainLeaves) }, { weight: 1, arbitrary: awkward });

    fc.assert(
      fc.property(graphs({ leaves, kinds: ['array', 'object', 'map', 'set'] }), (value) => {
        expect(outcome(() => new SuperjsonFormat().stringify(value))).toBe(outcome(() => textBySuperjson(value)));
      }),
      { numRuns: 500 },
    );
  });

  test('takes every key that superjson accepts', () => {
    fc.assert(fc.property(keys, (key) => copyIfPlain({ [key]: 1 }) !== NOT_PLAIN));
  });

  test('is taken for plain values and left for all others', () => {
    expect(copyIfPlain({ a: [1, 'x', null, { b: true }] })).toEqual({ a: [1, 'x', null, { b: true }] });
    for (const value of [
      undefined,
      -0,
      Number.NaN,
      1n,
      Symbol('s'),
      () => 1,
      new Date(0),
      new Money(1),
      [shared, shared],
    ]) {
      expect(copyIfPlain(value)).toBe(NOT_PLAIN);
    }
  });

  test('reads a getter once, so the text and the copy agree', () => {
    let reads = 0;
    const value = {
      get count() {
        reads += 1;
        return reads;
      },
    };

    const trip = new SuperjsonFormat().roundTrip(value, []);

    expect(trip).toEqual({
      text: '{"json":{"count":1},"__dbos_serializer":"superjson"}',
      serialization: 'js_superjson',
      value: { count: 1 },
    });
    expect(reads).toBe(1);
  });

  test('is left when a recipe claims a plain value, at any depth', () => {
    const format = new SuperjsonFormat();
    const claimed: unknown[] = [];
    format.registerRecipe<string, string[]>({
      name: 'secret',
      isApplicable: (value): value is string => typeof value === 'string' && value.startsWith('secret:'),
      serialize: (value) => {
        claimed.push(value);
        return ['hidden'];
      },
      deserialize: () => 'secret:?',
    });

    const text = format.stringify({ a: [{ b: 'secret:x' }], c: 'open' });

    expect(text).toBe(
      '{"json":{"a":[{"b":["hidden"]}],"c":"open"},"meta":{"values":{"a.0.b":[["custom","secret"]]}},"__dbos_serializer":"superjson"}',
    );
    expect(claimed).toEqual(['secret:x']);
  });
});
