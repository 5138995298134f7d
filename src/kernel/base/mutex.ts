// Locks for async code, first come, first served: a counting semaphore, and one with a single permit.
import { invariant } from './assert.js';

export class Semaphore {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(permits: number) {
    invariant(permits > 0, 'a semaphore needs at least one permit');
    this.#free = permits;
  }

  get free(): number {
    return this.#free;
  }

  async run<T>(body: () => Promise<T> | T): Promise<T> {
    await this.acquire();
    try {
      return await body();
    } finally {
      this.release();
    }
  }

  acquire(): Promise<void> | void {
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  release(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free += 1;
  }
}

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
