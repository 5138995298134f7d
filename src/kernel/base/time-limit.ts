// Time limits for promises. The work behind a promise continues after the limit; a late rejection is ignored.
import type { Clock } from './clock.js';
import { deferred } from './deferred.js';

/** Settles like the promise, or, after `limitMs`, with what `onTimeout` returns or throws. */
export async function withTimeLimit<T, Late>(
  clock: Clock,
  limitMs: number,
  promise: Promise<T>,
  onTimeout: () => Late,
): Promise<T | Late> {
  const settled = deferred<T | Late>();
  const timer = clock.after(limitMs, () => {
    try {
      settled.resolve(onTimeout());
    } catch (error) {
      settled.reject(error);
    }
  });
  promise.then(
    (value) => settled.resolve(value),
    (error: unknown) => settled.reject(error),
  );
  try {
    return await settled.promise;
  } finally {
    timer.cancel();
  }
}

/**
 * By when something has to be over that has several parts. They all draw from the same time, so however many of them hang,
 * one after the other or within each other, the whole ends in time.
 */
export class Deadline {
  readonly #clock: Clock;
  /** By the monotonic clock. */
  readonly #at: number;

  constructor(clock: Clock, limitMs: number) {
    this.#clock = clock;
    this.#at = clock.monotonic() + limitMs;
  }

  get leftMs(): number {
    return Math.max(0, this.#at - this.#clock.monotonic());
  }

  /** So much earlier. */
  before(ms: number): Deadline {
    return new Deadline(this.#clock, this.leftMs - ms);
  }

  /** At most this long from now, and not later than this one. */
  within(limitMs: number): Deadline {
    return new Deadline(this.#clock, Math.min(limitMs, this.leftMs));
  }

  /** Calls back when it has passed, unless what is returned is called first. */
  onPassed(run: () => void): () => void {
    const timer = this.#clock.after(this.leftMs, run);
    return () => timer.cancel();
  }

  /** Waits for the promise while there is time. False if there was too little: the work behind it goes on. */
  async settles(promise: Promise<unknown>): Promise<boolean> {
    return withTimeLimit(
      this.#clock,
      this.leftMs,
      promise.then(() => true),
      () => false,
    );
  }
}
