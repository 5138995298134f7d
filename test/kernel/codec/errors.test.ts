import { runInNewContext } from 'node:vm';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Codec, type Encoded } from '../../../src/kernel/codec/codec.js';
import {
  DBOSMaxStepRetriesError,
  DBOSStreamTimeoutError,
  DBOSWorkflowCancelledError,
  getDBOSErrorCode,
  isStreamTimeoutError,
  PortableWorkflowError,
  UnreadableValueError,
} from '../../../src/kernel/errors/errors.js';
import { findDifference, knownLeaves, trees } from './graphs.js';

function setup() {
  const codec = new Codec();
  const encode = (thrown: unknown): Encoded => codec.encodeError(thrown) as Encoded;
  const revive = (thrown: unknown): unknown => {
    const { text, serialization } = encode(thrown);
    return codec.decodeError(text, serialization);
  };
  return { codec, encode, revive };
}

function stored(encoded: Encoded): unknown {
  return (JSON.parse(encoded.text) as { json: unknown }).json;
}

describe('a stored error', () => {
  test('has the name, message, stack and own fields, in superjson form', () => {
    const error = Object.assign(new TypeError('bad'), { code: 'E_BAD', retries: 2 });
    error.stack = 'TypeError: bad\n    at here';

    expect(setup().encode(error)).toEqual({
      text:
        '{"json":{"name":"TypeError","message":"bad","stack":"TypeError: bad\\n    at here","code":"E_BAD","retries":2},' +
        '"__dbos_serializer":"superjson"}',
      serialization: 'js_superjson',
    });
  });

  test('comes back as an Error with the same name, message, stack and fields', () => {
    const error = Object.assign(new TypeError('bad'), { code: 'E_BAD', at: new Date(5), tags: new Set(['x']) });

    const revived = setup().revive(error) as typeof error;

    expect(revived).toBeInstanceOf(Error);
    expect(revived).toMatchObject({ name: 'TypeError', message: 'bad', stack: error.stack, code: 'E_BAD' });
    expect(revived.at).toEqual(new Date(5));
    expect(revived.tags).toEqual(new Set(['x']));
    expect(Object.keys(revived)).toEqual(['code', 'at', 'tags']);
  });

  test('of our own keeps its number and code, by which it is recognised', () => {
    const { revive } = setup();

    const cancelled = revive(new DBOSWorkflowCancelledError('w-1')) as DBOSWorkflowCancelledError;

    expect(getDBOSErrorCode(cancelled)).toBe(24);
    expect(cancelled).toMatchObject({
      name: 'DBOSWorkflowCancelledError',
      code: 'WORKFLOW_CANCELLED',
      workflowID: 'w-1',
    });
    expect(isStreamTimeoutError(revive(new DBOSStreamTimeoutError('w-1', 'k')))).toBe(true);
    expect(isStreamTimeoutError(cancelled)).toBe(false);
  });

  test('keeps its chain of causes, whatever they are', () => {
    const root = Object.assign(new RangeError('root'), { code: 7 });
    const middle = new Error('middle', { cause: root });

    const revived = setup().revive(new Error('top', { cause: middle })) as Error & {
      cause: Error & { cause: unknown };
    };

    expect(revived.cause).toBeInstanceOf(Error);
    expect(revived.cause.message).toBe('middle');
    expect(revived.cause.cause).toBeInstanceOf(Error);
    expect(revived.cause.cause).toMatchObject({ name: 'RangeError', message: 'root', code: 7 });
    expect(Object.keys(revived)).toEqual([]);
    expect((setup().revive(new Error('top', { cause: 'a text' })) as Error).cause).toBe('a text');
    expect((setup().revive(new Error('top', { cause: { name: 'n', message: 'm' } })) as Error).cause).toEqual({
      name: 'n',
      message: 'm',
    });
  });

  test('keeps the inner errors of an AggregateError and of a step that ran out of retries', () => {
    const inner = [Object.assign(new TypeError('one'), { code: 1 }), 'two'];

    const aggregate = setup().revive(new AggregateError(inner, 'all failed')) as AggregateError;
    const retries = setup().revive(
      new DBOSMaxStepRetriesError('s', 1, [new TypeError('x')]),
    ) as DBOSMaxStepRetriesError;

    expect(aggregate.name).toBe('AggregateError');
    expect(aggregate.errors[0]).toBeInstanceOf(Error);
    expect(aggregate.errors[0]).toMatchObject({ name: 'TypeError', message: 'one', code: 1 });
    expect(aggregate.errors[1]).toBe('two');
    expect(retries.errors[0]).toBeInstanceOf(Error);
    expect(retries.errors[0]?.name).toBe('TypeError');
  });

  test('keeps an error in a field of another', () => {
    const revived = setup().revive(Object.assign(new Error('outer'), { original: new TypeError('inner') }));

    expect((revived as { original: unknown }).original).toBeInstanceOf(Error);
    expect(revived).toMatchObject({ original: { name: 'TypeError', message: 'inner' } });
  });

  test('may be its own cause', () => {
    const first: Error = new Error('first');
    const second = new Error('second', { cause: first });
    first.cause = second;

    const revived = setup().revive(first);

    expect(revived).toMatchObject({ message: 'first', cause: { message: 'second', cause: '[Circular]' } });
  });

  test('has a bounded number of causes', () => {
    let error = new Error('innermost');
    for (let depth = 0; depth < 5000; depth += 1) error = new Error(`level ${depth}`, { cause: error });

    let revived = setup().revive(error);
    let depth = 0;
    while (revived instanceof Error) {
      revived = revived.cause;
      depth += 1;
    }

    expect(depth).toBe(100);
    expect(revived).toBe('Error: level 4899');
  });

  test('from another realm is still an Error', () => {
    const foreign: unknown = runInNewContext(`Object.assign(new TypeError('foreign'), { code: 3 })`);

    const revived = setup().revive(foreign);

    expect(foreign).not.toBeInstanceOf(Error);
    expect(revived).toBeInstanceOf(Error);
    expect(revived).toMatchObject({ name: 'TypeError', message: 'foreign', code: 3 });
  });

  test('without a stack, as superjson revives them, stays an Error', () => {
    const error = new TypeError('bare');
    error.stack = undefined;

    expect(setup().revive(error)).toBeInstanceOf(Error);
    expect(setup().revive(error)).toMatchObject({ name: 'TypeError', message: 'bare', stack: 'TypeError: bare' });
  });

  test('is stored without the fields that cannot be', () => {
    class Socket {
      readonly self = this;
      readonly size = 1n;
    }
    const error = Object.assign(new Error('request failed', { cause: new Socket() }), {
      code: 'ECONNRESET',
      status: 502,
      details: { id: 5 },
      request: new Socket(),
      retry: () => 1,
      constructor: 'x',
    });
    Object.defineProperty(error, 'failing', {
      enumerable: true,
      get() {
        throw new Error('no');
      },
    });

    const revived = setup().revive(error) as Error;

    expect(revived).toMatchObject({ message: 'request failed', code: 'ECONNRESET', status: 502, details: { id: 5 } });
    expect(Object.keys(revived)).toEqual(['code', 'status', 'details']);
    expect(revived.cause).toMatchObject({ name: 'NonError', message: expect.stringContaining('Socket') as string });
  });

  test('that is refused by a serializer is given to it again without the fields at fault', async () => {
    const serializer = {
      name: () => 'strict',
      stringify: async (value: unknown) => JSON.stringify(value),
      parse: async (text: string | null | undefined) => JSON.parse(text ?? 'null') as unknown,
    };
    const codec = new Codec(serializer);
    const error = Object.assign(new Error('big'), { size: 1n, code: 'E_BIG' });

    const { text, serialization } = await codec.encodeError(error);

    expect(serialization).toBe('strict');
    expect(await codec.decodeError(text, serialization)).toMatchObject({ message: 'big', code: 'E_BIG' });
  });
});

describe('a thrown value that is no Error', () => {
  test.each([
    ['a text', 'boom'],
    ['a number', 42],
    ['undefined', undefined],
    ['null', null],
    ['an object', { status: 404, at: new Date(0) }],
    ['an object with a message', { message: 'x' }],
    ['an object like an error', { name: 'Odd', message: 'x', code: 3 }],
    ['an object like an error with a stack', { name: 'Odd', message: 'x', stack: 's' }],
    ['a list', [1, new Map([['a', 1n]])]],
  ])('survives: %s', (_name, thrown) => {
    const revived = setup().revive(thrown);

    expect(revived).not.toBeInstanceOf(Error);
    expect(revived).toEqual(thrown);
  });

  test('survives whatever it is', () => {
    const { revive } = setup();

    fc.assert(
      fc.property(trees({ leaves: knownLeaves, kinds: ['array', 'object', 'map', 'set'] }), (thrown) => {
        expect(findDifference([thrown], [revive(thrown)])).toBeUndefined();
      }),
    );
  });

  test('is shown as text where it has no stored form', () => {
    class Handle {
      readonly self = this;
    }

    expect(setup().revive(function named() {})).toBe('[Function: named]');
    expect(setup().revive(Symbol('s'))).toBe('Symbol(s)');
    expect(setup().revive(new Handle())).toMatchObject({
      name: 'NonError',
      message: expect.stringContaining('Handle') as string,
    });
  });

  test('is an Error to a reader that only knows errors, if it looks like one', () => {
    const description = stored(setup().encode({ name: 'Odd', message: 'x' }));

    expect(description).toEqual({ name: 'NonError', message: 'x', thrown: { name: 'Odd', message: 'x' } });
  });
});

describe('reading what the peer wrote', () => {
  test.each([
    [
      'with the marker',
      '{"json":{"name":"TypeError","message":"bad","stack":"TypeError: bad\\n at x","code":"E"},"__dbos_serializer":"superjson"}',
      'js_superjson',
    ],
    [
      'without a format name',
      '{"json":{"dbosErrorCode":1,"name":"TypeError","message":"bad","code":"E"},"__dbos_serializer":"superjson"}',
      null,
    ],
    ['before superjson', '{"name":"TypeError","message":"bad","stack":"s","code":"E"}', null],
    ['in the legacy format', '{"name":"TypeError","message":"bad","stack":"s","code":"E"}', 'js_legacy'],
    [
      'as a superjson Error',
      '{"json":{"name":"TypeError","message":"bad"},"meta":{"values":["Error"]},"__dbos_serializer":"superjson"}',
      'js_superjson',
    ],
  ])('an error %s is revived', (_name, text, serialization) => {
    const revived = setup().codec.decodeError(text, serialization) as Error & { code?: unknown };

    expect(revived).toBeInstanceOf(Error);
    expect(revived).toMatchObject({ name: 'TypeError', message: 'bad' });
    if (text.includes('"code"')) expect(revived.code).toBe('E');
  });

  test('no text gives null', () => {
    expect(setup().codec.decodeError(null, 'js_superjson')).toBeNull();
    expect(setup().codec.decodeError(undefined, 'portable_json')).toBeNull();
  });
});

describe('a portable error', () => {
  const encode = (thrown: unknown): unknown => setup().codec.encodeError(thrown, { format: 'portable' });
  const portable = (text: string) => ({ text, serialization: 'portable_json' });

  test('has a name and a message, and a code and data if there are any', () => {
    expect(encode(new RangeError('far'))).toEqual(portable('{"name":"RangeError","message":"far"}'));
    expect(encode(Object.assign(new Error('x'), { code: 'E', data: { at: new Date(0) } }))).toEqual(
      portable('{"name":"Error","message":"x","code":"E","data":{"at":"1970-01-01T00:00:00.000Z"}}'),
    );
    expect(encode(Object.assign(new Error('x'), { code: { not: 'a code' } }))).toEqual(
      portable('{"name":"Error","message":"x"}'),
    );
    expect(encode(new PortableWorkflowError('m', 'N', 7, [1]))).toEqual(
      portable('{"name":"N","message":"m","code":7,"data":[1]}'),
    );
  });

  test('of a thrown value that is no Error carries it as data', () => {
    expect(encode('boom')).toEqual(portable('{"name":"NonError","message":"boom"}'));
    expect(encode({ a: 1 })).toEqual(portable('{"name":"NonError","message":"{ a: 1 }","data":{"a":1}}'));
    expect(encode({ name: 'Odd', message: 'x', code: 3 })).toEqual(portable('{"name":"Odd","message":"x","code":3}'));
  });

  test('is stored without data that has no portable form', () => {
    const data: unknown[] = [];
    data.push(data);

    expect(encode(Object.assign(new Error('x'), { data }))).toEqual(portable('{"name":"Error","message":"x"}'));
  });

  test('comes back as a PortableWorkflowError', () => {
    const text = '{"name":"ValueError","message":"bad","code":"E","data":{"a":[1]}}';

    const revived = setup().codec.decodeError(text, 'portable_json');

    expect(revived).toBeInstanceOf(PortableWorkflowError);
    expect(revived).toMatchObject({ name: 'ValueError', message: 'bad', code: 'E', data: { a: [1] } });
    expect(setup().codec.decodeError('{"message":"bad","code":null}', 'portable_json')).toMatchObject({
      name: 'Error',
      message: 'bad',
      code: undefined,
    });
  });

  test('of our own is recognised by its code', () => {
    const { text } = setup().codec.encodeError(new DBOSStreamTimeoutError('w', 'k', 5), {
      format: 'portable',
    }) as Encoded;

    expect(isStreamTimeoutError(setup().codec.decodeError(text, 'portable_json'))).toBe(true);
  });

  test.each(['"boom"', '{"name":"x"}', '[]', 'null', '{'])('is unreadable as %s', (text) => {
    expect(() => setup().codec.decodeError(text, 'portable_json')).toThrow(UnreadableValueError);
  });
});
