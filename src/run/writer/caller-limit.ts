// Callers outside of workflows wait for their writes, but not for ever: a request whose database is down gets an error. What
// is given up is not written any more, unless a commit that has it may have been made.
import type { Clock, Timer } from '../../kernel/base/clock.js';

interface Waiting {
  readonly call: object;
  readonly dueAt: number;
  readonly reject: (error: Error) => void;
}

export interface CallerLimitOptions {
  readonly clock: Clock;
  readonly limitMs: number;
  /** The error for the caller. */
  readonly explain: (call: object) => Error;
}

export class CallerLimit {
  readonly #options: CallerLimitOptions;
  /** The longest first. */
  readonly #waiting = new Set<Waiting>();
  readonly #givenUp = new WeakMap<object, Error>();
  #timer: Timer | undefined;

  constructor(options: CallerLimitOptions) {
    this.#options = options;
  }

  /** The promise, or an error when the limit is over. */
  wait<T>(call: object, promise: Promise<T>): Promise<T> {
    const { clock, limitMs } = this.#options;
    if (limitMs === Infinity) return promise;
    return new Promise((resolve, reject) => {
      const waiting = { call, dueAt: clock.monotonic() + limitMs, reject };
      this.#waiting.add(waiting);
      this.#timer ??= clock.after(limitMs, () => this.#onDue());
      promise.then(
        (value) => {
          this.#end(waiting);
          resolve(value);
        },
        (error: Error) => {
          this.#end(waiting);
          reject(error);
        },
      );
    });
  }

  /** What the caller was told who does not wait for it any more. */
  errorOf(call: object): Error | undefined {
    return this.#givenUp.get(call);
  }

  #end(waiting: Waiting): void {
    this.#waiting.delete(waiting);
    if (this.#waiting.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #onDue(): void {
    const { clock, explain } = this.#options;
    this.#timer = undefined;
    for (const waiting of this.#waiting) {
      const leftMs = waiting.dueAt - clock.monotonic();
      if (leftMs > 0) {
        this.#timer = clock.after(leftMs, () => this.#onDue());
        return;
      }
      const error = explain(waiting.call);
      this.#givenUp.set(waiting.call, error);
      this.#waiting.delete(waiting);
      waiting.reject(error);
    }
  }
}
