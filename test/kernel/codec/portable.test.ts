import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Codec } from '../../../src/kernel/codec/codec.js';
import { SerializationError, UnreadableValueError } from '../../../src/kernel/errors/errors.js';
import { plainLeaves, trees } from './graphs.js';

function setup() {
  const codec = new Codec();
  const encode = (value: unknown): unknown => codec.encodeValue(value, 'portable');
  return { codec, encode };
}

const portable = (text: string) => ({ text, serialization: 'portable_json' });

describe('a portable value', () => {
  test.each([
    ['undefined', undefined, 'null'],
    ['null', null, 'null'],
    ['a function', () => 1, 'null'],
    ['a Date', new Date(0), '"1970-01-01T00:00:00.000Z"'],
    ['an invalid Date', new Date(Number.NaN), 'null'],
    ['a BigInt', 12345678901234567890n, '"12345678901234567890"'],
    ['a Map with texts as keys', new Map([['a', new Set([1n])]]), '{"a":["1"]}'],
    ['a Set', new Set(['a', new Date(0)]), '["a","1970-01-01T00:00:00.000Z"]'],
    ['an Error', { failure: new RangeError('too far') }, '{"failure":{"name":"RangeError","message":"too far"}}'],
    ['a mix', [1, { b: undefined, c: [undefined] }], '[1,{"c":[null]}]'],
    ['an object used twice', Array(2).fill({ a: 1 }), '[{"a":1},{"a":1}]'],
    ['the stream sentinel', '__DBOS_STREAM_CLOSED__', '"__DBOS_STREAM_CLOSED__"'],
  ])('is JSON that any language reads: %s', (_name, value, text) => {
    expect(setup().encode(value)).toEqual(portable(text));
  });

  test('with a Map key that is no text is refused', () => {
    expect(() => setup().encode({ a: new Map([[1, 'x']]) })).toThrow(SerializationError);
    expect(() => setup().encode(new Map([[1, 'x']]))).toThrow('a key of type number has no portable form');
  });

  test('that contains itself is refused', () => {
    const circle: unknown[] = [];
    circle.push(circle);

    expect(() => setup().encode(circle)).toThrow(TypeError);
  });

  test('does not use recipes', () => {
    const { codec, encode } = setup();
    codec.registerRecipe<string, string[]>({
      name: 'texts',
      isApplicable: (value): value is string => typeof value === 'string',
      serialize: () => [],
      deserialize: () => '',
    });

    expect(encode({ a: 'x' })).toEqual(portable('{"a":"x"}'));
  });

  test('of plain JSON comes back the same', () => {
    const { codec } = setup();

    fc.assert(
      fc.property(trees({ leaves: plainLeaves, kinds: ['array', 'object'] }), (value) => {
        const { text, serialization } = codec.encodeValue(value, 'portable') as { text: string; serialization: string };

        expect(text).toBe(JSON.stringify(value));
        expect(codec.decodeValue(text, serialization)).toEqual(value);
      }),
    );
  });

  test('that is no JSON is unreadable', () => {
    expect(() => setup().codec.decodeValue('__DBOS_STREAM_CLOSED__', 'portable_json')).toThrow(UnreadableValueError);
  });
});

describe('portable inputs', () => {
  test('hold positional arguments first, and named ones only if given', () => {
    const { codec } = setup();

    expect(codec.encodeInputs([1, new Date(0)], 'portable')).toEqual(
      portable('{"positionalArgs":[1,"1970-01-01T00:00:00.000Z"]}'),
    );
    expect(codec.encodeInputs([1], 'portable', { b: 2n, a: undefined })).toEqual(
      portable('{"positionalArgs":[1],"namedArgs":{"b":"2"}}'),
    );
    expect(codec.encodeInputs([], 'portable', {})).toEqual(portable('{"positionalArgs":[],"namedArgs":{}}'));
  });

  test.each([
    ['by us', '{"positionalArgs":[1]}', { args: [1] }],
    ['with named arguments', '{"positionalArgs":[1],"namedArgs":{"b":2}}', { args: [1], namedArgs: { b: 2 } }],
    ['by the SQL function', '{"positionalArgs" : [1], "namedArgs" : {}}', { args: [1], namedArgs: {} }],
    ['in another order', '{"namedArgs":{"b":2},"positionalArgs":[]}', { args: [], namedArgs: { b: 2 } }],
    ['with named arguments only', '{"namedArgs":{"b":2}}', { args: [], namedArgs: { b: 2 } }],
    ['with an explicit null', '{"positionalArgs":[1],"namedArgs":null}', { args: [1] }],
  ])('are read as written %s', (_name, text, inputs) => {
    expect(setup().codec.decodeInputs(text, 'portable_json')).toEqual(inputs);
  });

  test.each(['[1]', '1', 'null', '{"positionalArgs":{"0":1}}', 'x'])('are unreadable as %s', (text) => {
    expect(() => setup().codec.decodeInputs(text, 'portable_json')).toThrow(UnreadableValueError);
  });
});
