// Runs a function at most once per interval: the first call immediately, the rest as one at the end of the interval.
import type { Clock, Timer } from './clock.js';

export class Throttle {
  #timer: Timer | undefined;
  #isWanted = false;
  #isStopped = false;

  constructor(
    readonly clock: Clock,
    readonly intervalMs: number,
    readonly run: () => void,
  ) {}

  call(): void {
    if (this.#isStopped) return;
    if (this.#timer) {
      this.#isWanted = true;
      return;
    }
    this.#timer = this.clock.after(this.intervalMs, () => {
      this.#timer = undefined;
      if (!this.#isWanted) return;
      this.#isWanted = false;
      this.call();
    });
    this.run();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}
