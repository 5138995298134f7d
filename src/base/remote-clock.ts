// An estimate of another machine's clock. It was read at some time between request and response, which bounds how far it
// is ahead of ours.
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

  /** Sends a request that also reads the other clock, and updates the estimate from the response. */
  async learn<T extends { readonly now: number }>(ask: () => Promise<T>): Promise<T> {
    const askedAt = this.#clock.now();
    const answer = await ask();
    const least = answer.now - this.#clock.now();
    const most = answer.now - askedAt;
    // The estimate may be better than a slow response; it only has to stay within the new bounds.
    this.#aheadMs = this.#aheadMs === undefined ? (least + most) / 2 : Math.min(Math.max(this.#aheadMs, least), most);
    return answer;
  }
}
