import { describe, expect, test } from 'vitest';
import { Codec, type Encoded, type InputsRoundTrip, type RoundTrip } from '../../../src/kernel/codec/codec.js';
import type { DBOSSerializer } from '../../../src/kernel/codec/serializer.js';
import {
  DBOSInvalidArgumentError,
  SerializationError,
  UnreadableValueError,
} from '../../../src/kernel/errors/errors.js';

const reversed = (text: string): string => [...text].reverse().join('');

const syncSerializer: DBOSSerializer = {
  name: () => 'reversed',
  stringify: (value) => reversed(JSON.stringify(value)),
  parse: (text) => (text == null ? 'nothing stored' : (JSON.parse(reversed(text)) as unknown)),
};

const asyncSerializer: DBOSSerializer = {
  name: () => 'reversed',
  stringify: async (value) => syncSerializer.stringify(value),
  parse: async (text) => syncSerializer.parse(text),
};

describe('formats', () => {
  test.each([undefined, 'native'] as const)('%s means the default serializer', (format) => {
    expect(new Codec().encodeValue({ a: 1 }, format)).toEqual({
      text: '{"json":{"a":1},"__dbos_serializer":"superjson"}',
      serialization: 'js_superjson',
    });
  });

  test('the name stored with a text decides how it is read', () => {
    const codec = new Codec();
    const date = '{"dbos_type":"dbos_Date","dbos_data":"1970-01-01T00:00:00.000Z"}';

    expect(codec.decodeValue('{"json":1,"__dbos_serializer":"superjson"}', 'js_superjson')).toBe(1);
    expect(codec.decodeValue('{"json":1,"__dbos_serializer":"superjson"}', null)).toBe(1);
    expect(codec.decodeValue('{"json":1,"__dbos_serializer":"superjson"}', undefined)).toBe(1);
    expect(codec.decodeValue('{"json":1}', 'portable_json')).toEqual({ json: 1 });
    expect(codec.decodeValue(date, 'js_legacy')).toEqual(new Date(0));
    expect(codec.decodeValue(date, 'portable_json')).toEqual(JSON.parse(date));
  });

  test.each(['js_superjson', 'portable_json', 'js_legacy', null])('no text is null in the format %s', (format) => {
    expect(new Codec().decodeValue(null, format)).toBeNull();
    expect(new Codec().decodeValue(undefined, format)).toBeNull();
  });

  test('a format that is not available is refused by name', () => {
    const read = () => new Codec().decodeValue('gASV', 'py_pickle');

    expect(read).toThrow(SerializationError);
    expect(read).toThrow('Value deserialization type py_pickle is not available');
    expect(() => new Codec().decodeError('x', 'py_pickle')).toThrow('py_pickle is not available');
    expect(() => new Codec().decodeInputs('x', 'py_pickle')).toThrow('py_pickle is not available');
  });

  test('a format that does not exist cannot be written', () => {
    expect(() => new Codec().encodeValue(1, 'json' as 'native')).toThrow("Unknown serialization format 'json'");
  });

  test('a text that is not what its name says is unreadable', () => {
    expect(() => new Codec().decodeValue('{', 'js_legacy')).toThrow(UnreadableValueError);
    expect(() => new Codec().decodeValue('{', null)).toThrow(UnreadableValueError);
  });
});

describe('inputs', () => {
  test('are the array of arguments in the default format', () => {
    expect(new Codec().encodeInputs([1, undefined])).toEqual({
      text: '{"json":[1,null],"meta":{"values":{"1":["undefined"]}},"__dbos_serializer":"superjson"}',
      serialization: 'js_superjson',
    });
    expect(new Codec().decodeInputs('{"json":[1,2],"__dbos_serializer":"superjson"}', null)).toEqual({ args: [1, 2] });
  });

  test('with names need the portable format', () => {
    expect(() => new Codec().encodeInputs([], 'native', { a: 1 })).toThrow(DBOSInvalidArgumentError);
    expect(() => new Codec().roundTripInputs([], { namedArgs: { a: 1 } })).toThrow('Named arguments need the portable');
    expect(() => new Codec(syncSerializer).encodeInputs([], undefined, {})).toThrow(DBOSInvalidArgumentError);
  });

  test('that are no array are unreadable', () => {
    expect(() => new Codec().decodeInputs('{"json":5,"__dbos_serializer":"superjson"}', 'js_superjson')).toThrow(
      UnreadableValueError,
    );
  });
});

describe('a custom serializer', () => {
  test('is used at once when it is synchronous', () => {
    const codec = new Codec(syncSerializer);
    const encoded = codec.encodeValue({ a: 1 }) as Encoded;

    expect(encoded).toEqual({ text: '}1:"a"{', serialization: 'reversed' });
    expect(codec.decodeValue(encoded.text, 'reversed')).toEqual({ a: 1 });
    expect(codec.decodeValue(encoded.text, null)).toEqual({ a: 1 });
    expect(codec.decodeInputs(']2,1[', 'reversed')).toEqual({ args: [1, 2] });
    expect(codec.roundTripValue([1])).toEqual({ text: ']1[', serialization: 'reversed', value: [1] });
    expect(codec.serializer).toBe(syncSerializer);
  });

  test('is awaited when it is asynchronous', async () => {
    const codec = new Codec(asyncSerializer);

    expect(await codec.encodeValue({ a: 1 })).toEqual({ text: '}1:"a"{', serialization: 'reversed' });
    expect(await codec.decodeValue('}1:"a"{', 'reversed')).toEqual({ a: 1 });
    expect(await codec.encodeInputs([1])).toEqual({ text: ']1[', serialization: 'reversed' });
    expect(await codec.decodeInputs(']1[', null)).toEqual({ args: [1] });
    expect(await codec.roundTripInputs([{ a: 1 }])).toEqual({
      text: ']}1:"a"{[',
      serialization: 'reversed',
      args: [{ a: 1 }],
    });
    const { text, serialization } = await codec.encodeError(Object.assign(new RangeError('far'), { code: 5 }));
    expect(await codec.decodeError(text, serialization)).toMatchObject({ name: 'RangeError', message: 'far', code: 5 });
    expect(await codec.decodeError(text, serialization)).toBeInstanceOf(Error);
  });

  test.each([syncSerializer, asyncSerializer])('is asked what a missing text means', async (serializer) => {
    expect(await new Codec(serializer).decodeValue(null, 'reversed')).toBe('nothing stored');
    expect(await new Codec(serializer).decodeError(null, 'reversed')).toBeNull();
  });

  test('leaves the other formats available', () => {
    const codec = new Codec(syncSerializer);

    expect(codec.decodeValue('{"json":1,"__dbos_serializer":"superjson"}', 'js_superjson')).toBe(1);
    expect(codec.encodeValue(1n, 'portable')).toEqual({ text: '"1"', serialization: 'portable_json' });
    expect(codec.decodeValue('{"type":"Buffer","data":[104]}', 'js_legacy')).toEqual(Buffer.from('h'));
  });

  test('that cannot read a text makes it unreadable, with its own error as the cause', async () => {
    const read = async (serializer: DBOSSerializer): Promise<unknown> =>
      new Codec(serializer).decodeValue('nope', null);

    for (const serializer of [syncSerializer, asyncSerializer]) {
      const failure = read(serializer);
      await expect(failure).rejects.toBeInstanceOf(UnreadableValueError);
      await expect(failure).rejects.toMatchObject({ format: 'reversed', cause: expect.any(SyntaxError) as Error });
    }
  });

  test('that fails to write, or writes no text, rejects the value', async () => {
    expect(() => new Codec(syncSerializer).encodeValue(1n)).toThrow('BigInt');
    await expect(async () => new Codec(asyncSerializer).encodeValue(1n)).rejects.toThrow('BigInt');
    const silent = { ...syncSerializer, stringify: () => undefined as unknown as string };
    expect(() => new Codec(silent).encodeValue(1)).toThrow("The serializer 'reversed' returned undefined");
  });
});

describe('a round trip', () => {
  const roundTrip = (value: unknown, format?: 'portable'): RoundTrip =>
    new Codec().roundTripValue(value, { format, path: ['shop', '<result>'] }) as RoundTrip;

  test.each([undefined, 'portable'] as const)(
    'gives the text and a copy that shares nothing, in format %s',
    (format) => {
      const value = { list: [{ a: 1 }], text: 'x' };

      const trip = roundTrip(value, format);
      value.list[0]!.a = 2;
      value.list.push({ a: 3 });

      expect(trip.value).toEqual({ list: [{ a: 1 }], text: 'x' });
      expect(new Codec().decodeValue(trip.text, trip.serialization)).toEqual(trip.value);
    },
  );

  test('gives what a later reader will get', () => {
    class Point {
      constructor(readonly x: number) {}
    }
    const value = { at: new Date(0), point: new Point(1), map: new Map([[1, undefined]]) };

    expect(roundTrip(value).value).toEqual({ at: new Date(0), point: { x: 1 }, map: new Map([[1, undefined]]) });
    expect(Object.getPrototypeOf((roundTrip(value).value as typeof value).point)).toBe(Object.prototype);
    expect(roundTrip(value.at, 'portable').value).toBe('1970-01-01T00:00:00.000Z');
    expect(roundTrip(undefined).value).toBeUndefined();
    expect(roundTrip(undefined, 'portable').value).toBeNull();
    expect(roundTrip(-0).value).toBe(-0);
  });

  test('of inputs copies positional and named arguments', () => {
    const codec = new Codec();
    const args = [{ a: 1 }];

    const native = codec.roundTripInputs(args) as InputsRoundTrip;
    const portable = codec.roundTripInputs(args, {
      format: 'portable',
      namedArgs: { when: new Date(0) },
    }) as InputsRoundTrip;

    expect(native).toEqual({ ...(codec.encodeInputs(args) as Encoded), args });
    expect(native.args[0]).not.toBe(args[0]);
    expect(portable.args[0]).not.toBe(args[0]);
    expect(portable).toEqual({
      text: '{"positionalArgs":[{"a":1}],"namedArgs":{"when":"1970-01-01T00:00:00.000Z"}}',
      serialization: 'portable_json',
      args,
      namedArgs: { when: '1970-01-01T00:00:00.000Z' },
    });
  });

  test('of a value that cannot be stored is refused', () => {
    class Odd {
      readonly size = 1n;
    }

    expect(() => roundTrip({ odd: new Odd() })).toThrow('BigInt');
  });
});

describe('a function lost in a round trip', () => {
  class Cart {
    readonly items = [1];
    total(): number {
      return this.items.length;
    }
    get first(): number {
      return 1;
    }
  }
  class BigCart extends Cart {
    clear(): void {}
  }

  interface Revived {
    run(): void;
    deep: [{ cart: BigCart }];
    map: Map<string, Cart>;
  }

  function setup(format?: 'portable'): Revived {
    const value = { run: () => 1, deep: [{ cart: new BigCart() }], map: new Map([['x', new Cart()]]) };
    return (new Codec().roundTripValue(value, { format, path: ['shop', '<result>'] }) as RoundTrip).value as Revived;
  }

  test.each([undefined, 'portable'] as const)(
    'throws when it is called, and says where it stood, in format %s',
    (format) => {
      const revived = setup(format);

      expect(() => revived.run()).toThrow(
        "Attempted to call 'run' at path shop.<result>.run. " +
          "Functions are not preserved through serialization; see 'DBOS.registerSerialization'.",
      );
      expect(() => revived.deep[0].cart.total()).toThrow(
        "Attempted to call 'total' at path shop.<result>.deep.0.cart.total.",
      );
      expect(() => revived.deep[0].cart.clear()).toThrow("Attempted to call 'clear'");
    },
  );

  test('is found in the values of a Map', () => {
    expect(() => setup().map.get('x')!.total()).toThrow('at path shop.<result>.map.0.total.');
  });

  test('is found in the arguments of a workflow', () => {
    const { args } = new Codec().roundTripInputs([{ done: () => 1 }], {
      path: ['wf', '<arguments>'],
    }) as InputsRoundTrip;

    expect(() => (args[0] as { done(): void }).done()).toThrow(
      "Attempted to call 'done' at path wf.<arguments>.0.done.",
    );
  });

  test('is neither stored, compared nor listed', () => {
    const revived = setup();

    expect(Object.keys(revived)).toEqual(['deep', 'map']);
    expect(revived.deep[0].cart).toEqual({ items: [1] });
    expect(new Codec().encodeValue(revived.deep)).toEqual({
      text: '{"json":[{"cart":{"items":[1]}}],"__dbos_serializer":"superjson"}',
      serialization: 'js_superjson',
    });
    expect('first' in revived.deep[0].cart).toBe(false);
  });

  test('does not get in the way of await and JSON.stringify', async () => {
    const value = { then: () => 1, toJSON: () => ({ a: 1 }), at: undefined };

    const trip = new Codec().roundTripValue(value) as RoundTrip;

    expect(await trip.value).toEqual({ a: 1 });
    expect(JSON.stringify(trip.value)).toBe('{"a":1}');
  });

  test('of a value that a recipe keeps is not touched', () => {
    const codec = new Codec();
    codec.registerRecipe({
      name: 'Cart',
      isApplicable: (value: unknown): value is Cart => value instanceof Cart,
      serialize: () => ({}),
      deserialize: () => new Cart(),
    });

    const { value } = codec.roundTripValue(new Cart()) as RoundTrip;

    expect((value as Cart).total()).toBe(1);
  });

  test('ends in a circle as it began', () => {
    const value: Record<string, unknown> = { run: () => 1 };
    value.self = value;

    const revived = (new Codec().roundTripValue(value) as RoundTrip).value as { run(): void; self: unknown };

    expect(revived.self).toBe(revived);
    expect(() => revived.run()).toThrow("Attempted to call 'run' at path run.");
  });
});

describe('two codecs', () => {
  test('do not share recipes', () => {
    const first = new Codec();
    first.registerRecipe<Date, string>({
      name: 'day',
      isApplicable: (value): value is Date => value instanceof Date,
      serialize: () => 'some day',
      deserialize: () => new Date(0),
    });

    expect(first.encodeValue(new Date(0))).toMatchObject({ text: expect.stringContaining('some day') as string });
    expect(new Codec().encodeValue(new Date(0))).toMatchObject({ text: expect.stringContaining('1970') as string });
  });
});
