// Keeps what many viewers ask for: one reading serves all of them for a while. Nothing is read without a request.
import type { Clock } from '../../../kernel/base/clock.js';

export interface CachedOptions {
  readonly minMs: number;
}

/** A reading is kept for at least this many times as long as it took: a slow database is not asked more often. */
const REST_FACTOR = 10;

export class Cached<K, T> {
  readonly #minMs: number;
  readonly #kept = new Map<K, { readonly until: number; readonly value: Promise<T> }>();

  constructor({ minMs }: CachedOptions) {
    this.#minMs = minMs;
  }

  /** Requests that come while it is being read share the reading. A failed one is not kept. */
  get(key: K, clock: Clock, read: () => Promise<T>): Promise<T> {
    const kept = this.#kept.get(key);
    if (kept && clock.monotonic() < kept.until) return kept.value;
    const begunAt = clock.monotonic();
    const value = read();
    this.#kept.set(key, { until: Infinity, value });
    value.then(
      () => {
        const now = clock.monotonic();
        this.#kept.set(key, { until: now + Math.max(this.#minMs, REST_FACTOR * (now - begunAt)), value });
      },
      () => this.#kept.delete(key),
    );
    return value;
  }
}
