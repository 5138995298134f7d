// The time of another machine's clock, as far as answers from it tell. An answer that took from one moment to another was
// given somewhere in between, which bounds how far the other clock is ahead.
import type { Clock } from './clock.js';

export class RemoteClock {
  readonly #clock: Clock;
  #aheadMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now() + (this.#aheadMs ?? 0);
  }

  /** Asks for the other clock's time, in the middle of whatever else is asked, and learns from the answer. */
  async learn<T extends { readonly now: number }>(ask: () => Promise<T>): Promise<T> {
    const askedAt = this.#clock.now();
    const answer = await ask();
    const least = answer.now - this.#clock.now();
    const most = answer.now - askedAt;
    // What is known may be better than a slow answer; it only has to agree with it.
    this.#aheadMs = this.#aheadMs === undefined ? (least + most) / 2 : Math.min(Math.max(this.#aheadMs, least), most);
    return answer;
  }
}
