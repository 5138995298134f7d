// What holds a consumer back goes by the time that passes, not by the time of day.
import { describe, expect, test } from 'vitest';
import { CircuitBreaker, RateLimiter } from '../../../src/plugins/outbox/consume/limits.js';
import { ManualClock } from '../../rig/manual-clock.js';

const HOUR_MS = 3_600_000;

describe.each([HOUR_MS, -HOUR_MS])('when the clock is set by %i ms', (byMs) => {
  test('a rate limit lets as many messages through as before', () => {
    const clock = new ManualClock();
    const limiter = new RateLimiter(clock, 10, 1000);
    limiter.spend(limiter.allow(10));

    clock.set(byMs);

    expect(limiter.allow(10)).toBe(0);
    expect(limiter.waitMs).toBe(100);
    clock.advance(500);
    expect(limiter.allow(10)).toBe(5);
  });

  test('a topic is left alone for as long as it was to be', () => {
    const clock = new ManualClock();
    const breaker = new CircuitBreaker(clock, { threshold: 1, maxMs: 30_000 });
    breaker.onOutage();
    const waitMs = breaker.waitMs;

    clock.set(byMs);

    expect(breaker.waitMs).toBe(waitMs);
    clock.advance(waitMs);
    expect(breaker.waitMs).toBe(0);
  });
});
