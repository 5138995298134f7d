// What holds a consumer back: a rate limit, and a circuit breaker for outages of what its handler needs.
import { type BackoffPolicy, backoffMs } from '../../../kernel/base/backoff.js';
import type { Clock } from '../../../kernel/base/clock.js';

/** Lets `max` messages through in every period, evenly spread. */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #max: number;
  readonly #perMs: number;
  #left: number;
  #filledAt: number;

  constructor(clock: Clock, max: number, perMs: number) {
    this.#clock = clock;
    this.#max = max;
    this.#perMs = perMs;
    this.#left = max;
    this.#filledAt = clock.monotonic();
  }

  /** How many of the wanted messages may be fetched now. */
  allow(wanted: number): number {
    this.#refill();
    return Math.min(wanted, Math.floor(this.#left));
  }

  spend(count: number): void {
    this.#left -= count;
  }

  /** How long until one more is allowed. */
  get waitMs(): number {
    this.#refill();
    return this.#left >= 1 ? 0 : ((1 - this.#left) * this.#perMs) / this.#max;
  }

  #refill(): void {
    const now = this.#clock.monotonic();
    this.#left = Math.min(this.#max, this.#left + ((now - this.#filledAt) * this.#max) / this.#perMs);
    this.#filledAt = now;
  }
}

const DOUBLINGS_MAX = 10;

export interface BreakerOptions {
  /** Outages in a row that open it. Default: 5. */
  readonly threshold?: number;
  /** The longest pause in milliseconds. */
  readonly maxMs?: number;
}

/**
 *   closed ──threshold outages in a row──► open ──pause over──► half-open ──success──► closed
 *                                            ▲                      │
 *                                            └────────outage────────┘
 */
export class CircuitBreaker {
  readonly #clock: Clock;
  readonly #threshold: number;
  readonly #policy: BackoffPolicy;
  #outages = 0;
  #opensAgainAt = 0;

  constructor(clock: Clock, { threshold = 5, maxMs = 30_000 }: BreakerOptions = {}) {
    this.#clock = clock;
    this.#threshold = threshold;
    this.#policy = { firstMs: Math.min(1000, maxMs), maxMs, rate: 2, jitter: 0.2 };
  }

  /** How long nothing may be tried. */
  get waitMs(): number {
    return this.isTripped ? Math.max(this.#opensAgainAt - this.#clock.monotonic(), 0) : 0;
  }

  /** Open or half-open. */
  get isTripped(): boolean {
    return this.#outages >= this.#threshold;
  }

  /** How many messages may be tried at once while it is half-open: one, then twice as many after each outage. */
  get probes(): number {
    return 2 ** Math.min(this.#outages - this.#threshold, DOUBLINGS_MAX);
  }

  onOutage(): void {
    // Messages that were tried at the same time meet the same outage.
    if (this.waitMs > 0) return;
    this.#outages += 1;
    if (!this.isTripped) return;
    this.#opensAgainAt = this.#clock.monotonic() + backoffMs(this.#policy, this.#outages - this.#threshold + 1);
  }

  /** The handler got through, whatever it made of the message. */
  onContact(): void {
    this.#outages = 0;
  }
}
