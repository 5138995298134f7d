import { describe, expect, test } from 'vitest';
import {
  constant,
  defaultStrategy,
  exponential,
  linear,
  noRetry,
} from '../../../src/plugins/outbox/consume/strategies.js';
import { durationMs } from '../../../src/kernel/base/duration.js';
import { duration } from '../../../src/kernel/check/validation.js';
import { normalized } from '../../../src/plugins/outbox/validate/finding.js';

const failed = (attempts: number, afterMs = 0) => ({
  attempts,
  firstAttemptAt: 0,
  lastAttemptAt: afterMs,
  error: new Error('no'),
});
const delays = (strategy: ReturnType<typeof constant>, count: number) =>
  Array.from({ length: count }, (_, index) => strategy(failed(index + 1)));

describe('a retry strategy', () => {
  test('waits as it says, until its attempts are used up', () => {
    expect(delays(noRetry(), 2)).toEqual([undefined, undefined]);
    expect(delays(constant({ delay: '5s', attempts: 3 }), 4)).toEqual([5000, 5000, undefined, undefined]);
    expect(delays(linear({ initial: 1000, step: 500 }), 3)).toEqual([1000, 1500, 2000]);
    expect(delays(exponential({ max: '3s' }), 4)).toEqual([1000, 2000, 3000, 3000]);
    expect(delays(exponential({ initial: 10, multiplier: 3 }), 3)).toEqual([10, 30, 90]);
  });

  test('gives up when its time is over', () => {
    const strategy = constant({ delay: 10, within: '1m' });

    expect(strategy(failed(5, 59_999))).toBe(10);
    expect(strategy(failed(5, 60_000))).toBeUndefined();
  });

  test('varies by half its jitter in either direction, and stays below its maximum', () => {
    const strategy = exponential({ initial: 1000, multiplier: 1, jitter: 0.5, max: 1100 });
    const drawn = Array.from({ length: 500 }, () => strategy(failed(1)) ?? 0);

    expect(Math.min(...drawn)).toBeGreaterThanOrEqual(750);
    expect(Math.min(...drawn)).toBeLessThan(800);
    expect(Math.max(...drawn)).toBe(1100);
  });

  test('that grows without a bound does not overflow', () => {
    expect(exponential()(failed(10_000))).toBeLessThanOrEqual(3_155_760_000_000);
  });

  test('is by default exponential with ten attempts', () => {
    expect(defaultStrategy(failed(9))).toBeGreaterThan(200_000);
    expect(defaultStrategy(failed(10))).toBeUndefined();
  });

  test.each([
    ['a negative delay', () => constant({ delay: -1 })],
    ['no attempts', () => exponential({ attempts: 0 })],
    ['too much jitter', () => exponential({ jitter: 3 })],
    ['an unknown option', () => exponential({ factor: 2 } as never)],
  ])('refuses %s', (_, make) => {
    expect(make).toThrow(/options/);
  });
});

test.each([
  ['500ms', 500],
  ['30s', 30_000],
  ['1.5m', 90_000],
  ['2h', 7_200_000],
  ['7d', 604_800_000],
  ['30 days', 2_592_000_000],
  ['1 hour', 3_600_000],
  ['2 weeks', 1_209_600_000],
  [250, 250],
] as const)('%s is %d ms', (given, ms) => {
  expect(durationMs(duration.read(given, 'delay'))).toBe(ms);
});

test.each([['5'], ['5 s'], ['-1s'], [NaN], [Infinity], [null], ['1w'], ['3 months'], [1e15]])(
  '%o is no duration',
  (given) => {
    expect(duration.accepts(given)).toBe(false);
  },
);

test.each([
  ['((acquired_token IS NULL) = (acquired_at IS NULL))', '(acquired_token is null) = (acquired_at is null)'],
  [`'0'::bigint`, `'0'`],
  ['(timer_id IS NOT NULL)', 'timer_id IS NOT NULL'],
])('%s is %s', (a, b) => {
  expect(normalized(a)).toBe(normalized(b));
});
