import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { Codec, type CodecOptions, type Encoded, type RoundTrip } from '../../../src/kernel/codec/codec.js';

function setup(options: CodecOptions = { lostValues: 'warn' }) {
  const warnings: string[] = [];
  const codec = new Codec(undefined, { ...options, warn: (message) => void warnings.push(message) });
  return { codec, warnings };
}

class Cart {
  items = 1;
  total(): number {
    return this.items;
  }
}

class Job {
  readonly source = Readable.from([]);
}

describe.each(['native', 'portable'] as const)('a value that loses something in the %s format', (format) => {
  test.each<[string, unknown, string]>([
    ['a function as an element', { list: [1, () => {}] }, 'The value at order.list.1 is a function, which'],
    ['a named function', [Math.max], 'The value at order.0 is a function (max), which'],
    ['a symbol', { deep: { color: Symbol('red') } }, 'The value at order.deep.color is Symbol(red), which'],
    ['a promise', { later: Promise.resolve(1) }, 'The value at order.later is a promise (is an await missing?), which'],
    ['a function in a Map', new Map([['key', () => {}]]), 'The value at order.key is a function'],
    ['a function in an object', { a: { cb: () => {} } }, 'The value at order.a.cb is a function (cb), which'],
    ['a query that is not awaited', { rows: { then: () => {} } }, 'The value at order.rows is a promise (is an await'],
    ['a response', { page: new Response('x') }, 'The value at order.page is of the type Response, which'],
    ['headers', [new Headers()], 'The value at order.0 is of the type Headers, which'],
    ['a stream', { from: Readable.from([]) }, 'The value at order.from is a stream, which'],
    ['a stream of the web', { from: new ReadableStream() }, 'The value at order.from is a stream, which'],
    ['an event emitter', { on: new EventEmitter() }, 'The value at order.on is an event emitter, which'],
    ['a WeakMap', new WeakMap(), 'The value at order is of the type WeakMap, which'],
    ['a weak reference', [new WeakRef({})], 'The value at order.0 is of the type WeakRef, which'],
    [
      'a signal',
      { signal: new AbortController().signal },
      'The value at order.signal is of the type AbortSignal, which',
    ],
    ['an iterator', { keys: new Map().keys() }, 'The value at order.keys is of the type Map Iterator, which'],
    ['a generator', { ids: (function* () {})() }, 'The value at order.ids is of the type Generator, which'],
    [
      'a buffer without a view',
      { bytes: new ArrayBuffer(1) },
      'The value at order.bytes is of the type ArrayBuffer, which',
    ],
    ['a view without elements', new DataView(new ArrayBuffer(1)), 'The value at order is of the type DataView, which'],
    ['a stream in an instance', { job: new Job() }, 'The value at order.job.source is a stream, which'],
  ])('is refused: %s', (_, value, message) => {
    const { codec } = setup();

    expect(() => codec.roundTripValue(value, { format, path: ['order'] })).toThrow(message);
    expect(() => codec.encodeValue(value, format, ['order'])).toThrow(message);
  });

  test('is warned of once if it is an instance of a class', () => {
    const { codec, warnings } = setup();

    void codec.encodeValue({ cart: new Cart() }, format, ['order']);
    void codec.encodeValue([new Cart()], format, ['other']);

    expect(warnings).toEqual([
      "The value at order.cart is an instance of class Cart. It is stored as a plain object, without its methods. Pass plain data, register a recipe with DBOS.registerSerialization, or set lostValues: 'ignore'.",
    ]);
  });

  test('is not refused because of the methods of an instance, and what it holds', () => {
    const { codec, warnings } = setup();
    class Result {
      readonly rows = [{ id: 1 }];
      readonly parsers = [() => 1];
      readonly cart = new Cart();
      readonly next = () => this.rows;
    }

    const { text } = codec.encodeValue(new Result(), format) as Encoded;

    expect(text).toContain('"rows":[{"id":1}],"parsers":[null],"cart":{"items":1}');
    expect(warnings).toEqual([expect.stringContaining('The value is an instance of class Result.')]);
  });

  test('is warned of if it is an error with more than superjson stores', () => {
    const { codec, warnings } = setup();
    class Declined extends Error {}

    void codec.encodeValue({ errors: [new TypeError('t'), new Declined(), new Declined()] }, format, ['pay']);
    void codec.encodeValue(Object.assign(new RangeError('far'), { code: 'E' }), format, ['go']);

    expect(warnings).toEqual([
      "The value at pay.errors.1 is an error of class Declined. It is stored without its class and fields, unless it is thrown. Pass plain data, register a recipe with DBOS.registerSerialization, or set lostValues: 'ignore'.",
      expect.stringContaining('The value at go is an error of class RangeError.'),
    ]);
  });

  test('is refused if instances are errors', () => {
    const { codec } = setup({ lostValues: 'error' });

    expect(() => codec.encodeValue({ cart: new Cart() }, format)).toThrow('an instance of class Cart');
  });

  test('is stored if losses are ignored', () => {
    const { codec, warnings } = setup({ lostValues: 'ignore' });

    void codec.encodeValue([new Cart(), () => {}, Symbol('s')], format);

    expect(warnings).toEqual([]);
  });
});

test.each<[string, unknown]>([
  ['a date', new Date(0)],
  ['a Map of Sets', new Map([['a', new Set([1n])]])],
  ['a pattern', /a/g],
  ['a URL', new URL('http://localhost/')],
  ['an error', new TypeError('no')],
  ['bytes', { buffer: Buffer.from('a'), bytes: new Uint8Array(1) }],
  ['undefined and special numbers', [undefined, NaN, -0, Infinity]],
  ['an object that says what is stored', { toJSON: undefined, at: new Date(0) }],
  ['an object without a prototype', Object.assign(Object.create(null) as object, { at: new Date(0) })],
])('%s loses nothing', (_, value) => {
  const { codec, warnings } = setup({ lostValues: 'error' });

  void codec.roundTripValue(value);

  expect(warnings).toEqual([]);
});

test('an instance comes back as a plain object, whatever is in its fields', () => {
  const { codec } = setup();
  class Order {
    readonly items = new Map([['apple', new Set([1n])]]);
    readonly failure = new RangeError('no');
    readonly pattern = /a/g;
    readonly at = new Date(0);
    readonly cart = new Cart();
    readonly self = this;
  }

  const { value } = codec.roundTripValue([new Order()]) as RoundTrip;

  const [order] = value as [Record<string, unknown>];
  const { self, ...fields } = order;
  expect(self).toBe(order);
  expect(fields).toEqual({
    items: new Map([['apple', new Set([1n])]]),
    failure: new RangeError('no'),
    pattern: /a/g,
    at: '1970-01-01T00:00:00.000Z',
    cart: { items: 1 },
  });
});

test('a key that would change a prototype is refused beside an instance, too', () => {
  const value = Object.assign(JSON.parse('{"__proto__":{"a":1}}') as object, { cart: new Cart() });

  expect(() => setup().codec.encodeValue(value)).toThrow('it has a property named __proto__');
});

test('what a recipe claims loses nothing', () => {
  const { codec } = setup({ lostValues: 'error' });
  codec.registerRecipe<Cart, number>({
    name: 'Cart',
    isApplicable: (value): value is Cart => value instanceof Cart,
    serialize: ({ items }) => items,
    deserialize: () => new Cart(),
  });

  expect(codec.roundTripValue({ cart: new Cart() })).toMatchObject({ value: { cart: new Cart() } });
});

test('a failure with a function in its fields is stored without it', () => {
  const { codec } = setup({ lostValues: 'error' });

  const { text } = codec.encodeError(Object.assign(new Error('no'), { retry: [() => {}], limit: 3 })) as {
    text: string;
  };

  expect(text).toContain('"limit":3');
});

describe('the size of a value', () => {
  test('is warned of once for each place above 10 MB', () => {
    const { codec, warnings } = setup();
    const large = 'x'.repeat(10_000_001);

    void codec.roundTripValue(large, { path: ['report'] });
    void codec.roundTripValue(large, { path: ['report'] });
    void codec.roundTripInputs([large], { path: ['mail', '<arguments>'] });

    expect(warnings).toEqual([
      expect.stringContaining('The value of report takes 10.0 MB.'),
      expect.stringContaining('The value of mail.<arguments> takes 10.0 MB.'),
    ]);
  });

  test.each(['native', 'portable'] as const)('is refused above the limit, in bytes, in the %s format', (format) => {
    const { codec } = setup({ maxPayloadBytes: 100 });

    void codec.encodeValue('x'.repeat(50), format);

    expect(() => codec.encodeValue('é'.repeat(60), format)).toThrow(
      /A value takes 1\d\d bytes, and maxPayloadBytes allows 100\./,
    );
    expect(() => codec.encodeInputs(['x'.repeat(100)], format)).toThrow('maxPayloadBytes allows 100');
  });
});
