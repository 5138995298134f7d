// An estimate of another machine's clock, such as the database's. The other clock was read at some time between request
// and response, which bounds how far it is ahead of ours. Without any response it is our own clock.
//
// Between two responses the time that passed is known by two clocks of ours. They differ if the machine was suspended or
// its clock was set, and then the next response tells which of them is right.
import { type Clock, sleep } from './clock.js';

/** What the last response said. */
interface Reading {
  /** When it came, by our clocks. */
  readonly at: number;
  readonly monotonicMs: number;
  /** How far the other clock is ahead of ours, at least and at most. */
  readonly leastMs: number;
  readonly mostMs: number;
  /** The estimate in between. */
  readonly aheadMs: number;
}

type Bounds = Pick<Reading, 'leastMs' | 'mostMs'>;

/** How fast two clocks drift apart at worst. */
const DRIFT_RATE = 0.0001;
/** A difference between our own clocks at which they cannot be relied on. */
const JUMP_MS = 1000;
const READING_MAX_AGE_MS = 60_000;

export class RemoteClock {
  readonly #clock: Clock;
  readonly #sync: (() => Promise<unknown>) | undefined;
  #reading: Reading | undefined;
  #syncing: Promise<void> | undefined;

  /** `sync` sends a request with `learn`, and retries it until it succeeds. */
  constructor(clock: Clock, sync?: () => Promise<unknown>) {
    this.#clock = clock;
    this.#sync = sync;
  }

  now(): number {
    return this.#clock.now() + (this.#reading?.aheadMs ?? 0);
  }

  /** No later than the other clock. */
  earliest(): number {
    if (!this.#reading) return this.#clock.now();
    const { at, leastMs } = this.#reading;
    const { wallMs, monotonicMs } = this.#elapsed(this.#reading);
    return at + leastMs + Math.min(wallMs, monotonicMs);
  }

  /** No earlier than the other clock. */
  latest(): number {
    if (!this.#reading) return this.#clock.now();
    const { at, mostMs } = this.#reading;
    const { wallMs, monotonicMs } = this.#elapsed(this.#reading);
    return at + mostMs + Math.max(wallMs, monotonicMs);
  }

  /**
   * Asks again if our clocks disagree about the time since the last response; undefined if they agree. Without this, a time
   * that is recorded could be off by as much as our own clock was set.
   */
  settle(): Promise<void> | undefined {
    return this.#sync && this.#reading && this.#hasJumped(this.#reading) ? this.#resync() : undefined;
  }

  /** Sends a request that also reads the other clock, and updates the estimate from the response. */
  async learn<T extends { readonly now?: number }>(ask: () => Promise<T>): Promise<T> {
    const asked = this.#clock.monotonic();
    const answer = await ask();
    if (answer.now === undefined) return answer;
    const at = this.#clock.now();
    const monotonicMs = this.#clock.monotonic();
    const leastMs = answer.now - at;
    // It was read after the request. Times are whole milliseconds.
    const mostMs = leastMs + Math.ceil(monotonicMs - asked);
    // The estimate may be better than a slow response; it only has to stay within the new bounds.
    const estimateMs = this.#reading?.aheadMs ?? (leastMs + mostMs) / 2;
    const aheadMs = Math.min(Math.max(estimateMs, leastMs), mostMs);
    this.#reading = { at, monotonicMs, aheadMs, ...this.#narrowed({ leastMs, mostMs }) };
    return answer;
  }

  /** The other clock is within the old bounds as well, unless a clock was set. */
  #narrowed(bounds: Bounds): Bounds {
    if (!this.#reading || this.#hasJumped(this.#reading)) return bounds;
    const driftMs = this.#elapsed(this.#reading).monotonicMs * DRIFT_RATE;
    const leastMs = Math.max(bounds.leastMs, this.#reading.leastMs - driftMs);
    const mostMs = Math.min(bounds.mostMs, this.#reading.mostMs + driftMs);
    return leastMs <= mostMs ? { leastMs, mostMs } : bounds;
  }

  #elapsed(since: Reading): { readonly wallMs: number; readonly monotonicMs: number } {
    return { wallMs: this.#clock.now() - since.at, monotonicMs: this.#clock.monotonic() - since.monotonicMs };
  }

  #hasJumped(since: Reading): boolean {
    const { wallMs, monotonicMs } = this.#elapsed(since);
    return Math.abs(wallMs - monotonicMs) > JUMP_MS;
  }

  get #isStale(): boolean {
    if (!this.#sync || !this.#reading) return false;
    return this.#hasJumped(this.#reading) || this.#elapsed(this.#reading).monotonicMs > READING_MAX_AGE_MS;
  }

  /** Resolves when the other clock has certainly reached the time. An abort rejects with the signal's reason. */
  async reached(at: number, signal?: AbortSignal): Promise<void> {
    for (;;) {
      if (this.#isStale) await this.#resync();
      signal?.throwIfAborted();
      const remainingMs = at - this.earliest();
      if (remainingMs <= 0) return;
      await sleep(this.#clock, remainingMs, signal, { byWallClock: true });
    }
  }

  #resync(): Promise<void> {
    this.#syncing ??= Promise.resolve(this.#sync?.())
      .then(() => {})
      .finally(() => (this.#syncing = undefined));
    return this.#syncing;
  }
}
