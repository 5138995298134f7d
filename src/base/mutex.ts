// Mutual exclusion for async code, first come, first served.
import { Semaphore } from './semaphore.js';

export class Mutex {
  readonly #semaphore = new Semaphore(1);

  get isLocked(): boolean {
    return this.#semaphore.free === 0;
  }

  /** Runs `body` while holding the lock. */
  run<T>(body: () => Promise<T> | T): Promise<T> {
    return this.#semaphore.run(body);
  }
}
