// Stored texts that no writer writes. Reading one may fail, but must not take the process with it.
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Codec } from '../../../src/kernel/codec/codec.js';
import { SuperjsonFormat } from '../../../src/kernel/codec/superjson.js';
import { UnreadableValueError } from '../../../src/kernel/errors/errors.js';

const SEED = 14;
const MAX_BYTES = 64 * 1024 * 1024;

function marked(json: unknown, meta: unknown): string {
  return JSON.stringify({ json, meta, __dbos_serializer: 'superjson' });
}

/** Each level refers twice to the one before it. */
function chain(levels: number): string {
  const json: Record<string, unknown> = { a0: [0] };
  const equalities: Record<string, string[]> = {};
  for (let level = 1; level <= levels; level += 1) {
    json[`a${level}`] = [0, 0];
    equalities[`a${level - 1}`] = [`a${level}.0`, `a${level}.1`];
  }
  return marked(json, { referentialEqualities: equalities });
}

function bytesOf(read: () => unknown): number {
  const before = process.memoryUsage();
  try {
    read();
  } catch (error) {
    expect(error).toBeInstanceOf(UnreadableValueError);
  }
  const after = process.memoryUsage();
  return after.external + after.arrayBuffers - before.external - before.arrayBuffers;
}

describe('a hostile text', () => {
  test.each<[string, string]>([
    ['a typed array with a number', marked(2_000_000_000, { values: [['typed-array', 'Uint8Array']] })],
    ['a typed array with a text', marked('2000000000', { values: [['typed-array', 'Float64Array']] })],
    ['a typed array with a length', marked({ length: 2_000_000_000 }, { values: [['typed-array', 'Uint8Array']] })],
    ['a Buffer with a length', marked({ length: 2_000_000_000 }, { values: [['custom', 'Buffer']] })],
    [
      'a Buffer in a Buffer',
      marked({ type: 'Buffer', data: { length: 2_000_000_000 } }, { values: [['custom', 'Buffer']] }),
    ],
  ])('with %s is unreadable, and allocates nothing', (_, text) => {
    expect(() => new SuperjsonFormat().parse(text)).toThrow(UnreadableValueError);
    expect(bytesOf(() => new SuperjsonFormat().parse(text))).toBeLessThan(MAX_BYTES);
  });

  test('whose shared values double with each link is unreadable', () => {
    for (const levels of [30, 100, 2000]) {
      expect(() => new SuperjsonFormat().parse(chain(levels))).toThrow(UnreadableValueError);
    }
  });

  test('is told from a text that shares values as programs do', () => {
    const shared = { list: Array.from({ length: 1000 }, (_, n) => ({ n })) };
    const value = Array.from({ length: 50 }, () => shared);
    const circle: Record<string, unknown> = { value };
    circle['self'] = circle;
    const format = new SuperjsonFormat();

    const revived = format.parse(format.stringify(circle)) as { value: unknown[]; self: unknown };

    expect(revived.self).toBe(revived);
    expect(revived.value[49]).toBe(revived.value[0]);
    expect(format.parse(chain(10))).toMatchObject({ a10: [expect.any(Array), expect.any(Array)] });
  });

  test('of any annotations is read or refused, soon', () => {
    const type = fc.oneof(
      fc.constantFrom('set', 'map', 'Error', 'Date', 'URL', 'regexp', 'bigint', 'number', 'undefined', 'constructor'),
      fc.tuple(fc.constantFrom('typed-array', 'custom', 'class'), fc.constantFrom('Uint8Array', 'Buffer', '__proto__')),
      fc.jsonValue(),
    );
    const path = fc.constantFrom(
      'a',
      'b',
      'a.0',
      'a.1',
      'b.c',
      '__proto__',
      'constructor.prototype',
      '',
      '.',
      'length',
    );
    const json = fc.oneof(
      fc.record({ a: fc.oneof(fc.array(fc.jsonValue()), fc.nat()), b: fc.jsonValue() }),
      fc.jsonValue(),
      fc.constantFrom(4_294_967_295, { length: 4_294_967_295 }),
    );
    const meta = fc.record(
      {
        values: fc.oneof(fc.dictionary(path, fc.tuple(type)), fc.tuple(type), fc.jsonValue()),
        referentialEqualities: fc.oneof(
          fc.dictionary(path, fc.array(path)),
          fc.tuple(fc.array(path), fc.dictionary(path, fc.array(path))),
          fc.jsonValue(),
        ),
        v: fc.nat(2),
      },
      { requiredKeys: [] },
    );
    const codec = new Codec();

    fc.assert(
      fc.property(json, meta, (value, annotations) => {
        const text = marked(value, annotations);
        try {
          codec.decodeValue(text, 'js_superjson');
        } catch (error) {
          if (!(error instanceof UnreadableValueError)) throw error;
        }
      }),
      { seed: SEED, numRuns: 500 },
    );
    expect(Object.keys(Object.prototype)).toEqual([]);
  });
});
