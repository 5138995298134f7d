import { describe, expect, test } from 'vitest';
import { inspectValue, showValue } from '../../../src/faces/http/views/value.js';

describe('a value', () => {
  test.each([null, true, 0, -1.5, '', 'text', [], [1, [null]], {}, { a: { b: [false] } }])(
    'that is JSON is shown as it is: %j',
    (value) => {
      expect(showValue(value)).toEqual({ json: value, isExact: true });
    },
  );

  test.each([
    [undefined, null, 'undefined'],
    [Number.NaN, 'NaN', 'NaN'],
    [Infinity, 'Infinity', 'Infinity'],
    [-0, '-0', '-0'],
    [12n, '12', '12n'],
    [new Date(0), '1970-01-01T00:00:00.000Z', '1970-01-01T00:00:00.000Z'],
    [new Date(Number.NaN), null, 'Invalid Date'],
    [new Map([['a', 1n]]), { a: '1' }, "Map(1) { 'a' => 1n }"],
    [new Map([[1, 'a']]), [[1, 'a']], "Map(1) { 1 => 'a' }"],
    [new Set([1, 2]), [1, 2], 'Set(2) { 1, 2 }'],
    [new Uint8Array([1, 2]), 'AQI=', 'Uint8Array(2) [ 1, 2 ]'],
    [/x/g, '/x/g', '/x/g'],
    [new URL('http://a/b'), 'http://a/b', expect.stringContaining('URL')],
    [{ a: undefined }, { a: null }, '{ a: undefined }'],
    [Symbol('s'), 'Symbol(s)', 'Symbol(s)'],
  ])('that JSON cannot say is shown in its nearest form, and in words: %s', (value, json, text) => {
    expect(showValue(value)).toEqual({ json, isExact: false, text });
  });

  test('that is an error keeps its fields and its cause', () => {
    const error = Object.assign(new TypeError('bad', { cause: new Error('worse') }), { code: 'E1' });

    const shown = showValue(error);

    expect(shown).toMatchObject({
      isExact: false,
      json: { name: 'TypeError', message: 'bad', code: 'E1', cause: { name: 'Error', message: 'worse' } },
    });
  });

  test('that contains itself ends somewhere', () => {
    const circle: Record<string, unknown> = {};
    circle['self'] = circle;

    expect(showValue(circle)).toMatchObject({ json: { self: '[Circular]' }, isExact: false });
  });

  test('that occurs twice is shown twice', () => {
    const shared = { a: 1 };

    expect(showValue([shared, shared])).toEqual({ json: [{ a: 1 }, { a: 1 }], isExact: true });
  });

  test('cannot change the prototype of the answer', () => {
    const value: unknown = JSON.parse('{"__proto__": {"isAdmin": true}}');

    const shown = showValue(value);

    expect(JSON.stringify(shown.json)).toBe('{"__proto__":{"isAdmin":true}}');
    expect((shown.json as { isAdmin?: boolean }).isAdmin).toBeUndefined();
  });

  test('of any size has a text of bounded size', () => {
    const { text = '' } = showValue(new Set(Array.from({ length: 100_000 }, (_, index) => index)));

    expect(text.length).toBe(65_536);
  });

  test('that is very large is cut before it is built', () => {
    const large = Array.from({ length: 200_000 }, (_, n) => ({ n, text: 'x'.repeat(80), at: new Date(0) }));
    const started = process.cpuUsage();

    const shown = showValue(large);
    const legacy = inspectValue(large);

    expect(process.cpuUsage(started).user).toBeLessThan(2_000_000);
    expect(shown).toMatchObject({ isExact: false, isTruncated: true });
    expect(JSON.stringify(shown).length).toBeLessThan(3_000_000);
    expect(legacy.length).toBeLessThanOrEqual(65_536);
  });

  test('whose parts are shared over and over ends', () => {
    let chain: unknown = 'leaf';
    for (let level = 0; level < 60; level += 1) chain = { left: chain, right: chain };

    expect(showValue(chain)).toMatchObject({ isExact: false, isTruncated: true });
  });

  test('that is very deep ends', () => {
    let deep: unknown = 1;
    for (let level = 0; level < 200_000; level += 1) deep = [deep];

    expect(showValue(deep)).toMatchObject({ isExact: false, isTruncated: true });
  });
});
