import { describe, expect, test } from 'vitest';
import { excerptOf } from '../../../src/kernel/base/excerpt.js';

const LIMITS = { nodes: 10, characters: 20, depth: 3 };

describe('an excerpt', () => {
  test.each<[unknown]>([[1], ['text'], [[1, 2, 3]], [{ a: { b: 1 } }], [new Map([['a', new Set([1])]])], [null]])(
    'of a value within the limits is the value itself: %o',
    (value) => {
      expect(excerptOf(value, LIMITS)).toEqual({ value, isTruncated: false });
      expect(excerptOf(value, LIMITS).value).toBe(value);
    },
  );

  test.each<[string, unknown, unknown]>([
    ['a long text', 'x'.repeat(30), `${'x'.repeat(20)}…`],
    ['many elements', Array.from({ length: 99 }, (_, n) => n), [0, 1, 2, 3, 4, 5, 6, 7, 8, '[…]']],
    ['a deep value', [[[[1]]]], [[['[…]']]]],
    [
      'many fields',
      Object.fromEntries(Array.from({ length: 99 }, (_, n) => [`${n}`, n])),
      expect.objectContaining({ 0: 0, '[…]': '[…]' }),
    ],
    ['many entries', new Map(Array.from({ length: 99 }, (_, n) => [n, n])), expect.any(Map)],
    ['a large set', new Set(Array.from({ length: 99 }, (_, n) => n)), new Set([0, 1, 2, 3, 4, 5, 6, 7, 8, '[…]'])],
    ['bytes', new Uint8Array(99), Buffer.alloc(20)],
    ['a hostile key', JSON.parse(`{"__proto__": 1, "${'k'.repeat(30)}": 2}`), expect.any(Object)],
  ])('leaves out the rest of %s', (_, value, expected) => {
    expect(excerptOf(value, LIMITS)).toEqual({ value: expected, isTruncated: true });
  });

  test('counts a shared value as often as it is printed', () => {
    let chain: unknown = 'leaf';
    for (let level = 0; level < 60; level += 1) chain = [chain, chain];

    const { value, isTruncated } = excerptOf(chain, { nodes: 1000, characters: 1000, depth: 100 });

    expect(isTruncated).toBe(true);
    expect(JSON.stringify(value).length).toBeLessThan(20_000);
  });

  test('leaves out a field that cannot be read', () => {
    const failing = {
      get bad(): never {
        throw new Error('no');
      },
      rest: 'x'.repeat(99),
    };

    expect(excerptOf(failing, LIMITS).value).toMatchObject({ bad: '[…]' });
  });

  test('keeps a cycle a cycle', () => {
    const circle: Record<string, unknown> = { filler: Array.from({ length: 99 }, () => 1) };
    circle['self'] = circle;
    const first = { self: undefined as unknown, rest: 'x'.repeat(99) };
    first.self = first;

    expect(excerptOf(circle, LIMITS).isTruncated).toBe(true);
    const { value } = excerptOf(first, LIMITS) as { value: { self: unknown } };
    expect(value.self).toBe(value);
  });
});
