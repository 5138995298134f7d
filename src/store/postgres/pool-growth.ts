// Keeps a pool small. While all of its connections are in use, a caller waits a moment for one to be returned before it
// opens another: to connect takes longer than most statements. Without this, the services of a launch open one each.
import type { Timer } from '../../base/clock.js';
import { systemClock } from '../../base/clock.js';
import { deferred } from '../../base/deferred.js';

/** The part of a pool that counts. */
export interface GrowingPool {
  readonly totalCount: number;
  readonly idleCount: number;
  readonly options: { readonly max?: number };
}

export class PoolGrowth {
  readonly #pool: GrowingPool;
  readonly #pauseMs: number;
  readonly #waiters: (() => void)[] = [];
  /** Callers that may take a connection and have not got it yet. */
  #taking = 0;
  #timer: Timer | undefined;

  constructor(pool: GrowingPool, pauseMs: number) {
    this.#pool = pool;
    this.#pauseMs = pauseMs;
  }

  /** Takes a connection when there is one, or when it is time to open another. */
  async take<T>(connect: () => Promise<T>): Promise<T> {
    if (this.#waiters.length === 0 && this.#mayTake) this.#taking += 1;
    else await this.#wait();
    try {
      return await connect();
    } finally {
      this.#taking -= 1;
    }
  }

  /** A connection was returned or closed. */
  returned(): void {
    if (this.#waiters.length > 0) this.#admit();
  }

  get #mayTake(): boolean {
    const { idleCount, totalCount } = this.#pool;
    return idleCount > this.#taking || totalCount + this.#taking === 0 || this.#isFull;
  }

  /** Then the pool has a queue of its own. */
  get #isFull(): boolean {
    const { totalCount, options } = this.#pool;
    return totalCount >= (options.max ?? Infinity);
  }

  #wait(): Promise<void> {
    const admitted = deferred<void>();
    this.#waiters.push(() => admitted.resolve());
    this.#arm();
    return admitted.promise;
  }

  #admit(): void {
    this.#taking += 1;
    this.#waiters.shift()?.();
    if (this.#waiters.length > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /**
   * Opens one at a time, as long as callers wait, however short their waits are: where many wait all the time, more
   * connections help. By the system's clock: connections are in use for real time, even if a test has a
   * clock of its own.
   */
  #arm(): void {
    this.#timer ??= systemClock.after(this.#pauseMs, () => {
      this.#timer = undefined;
      if (this.#waiters.length > 0) this.#admit();
      while (this.#waiters.length > 0 && this.#isFull) this.#admit();
      if (this.#waiters.length > 0) this.#arm();
    });
  }
}
