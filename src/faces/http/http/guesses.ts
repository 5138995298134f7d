// Limits how many wrong tokens an address may send in a minute, in logins and in requests. The right token is never refused:
// others could lock its owner out, who may share an address with them behind a proxy.
import type { Clock } from '../../../kernel/base/clock.js';
import { Refusal } from './refusal.js';

const WRONG_MAX = 10;
const PERIOD_MS = 60_000;
/** Addresses to remember. */
const ADDRESSES_MAX = 10_000;

export class Guesses {
  readonly #clock: Clock;
  readonly #wrongAt = new Map<string, number[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts a wrong token. Throws if there were too many from this address, '' if it is unknown. */
  count(address: string): void {
    const now = this.#clock.monotonic();
    const wrongAt = (this.#wrongAt.get(address) ?? []).filter((at) => at > now - PERIOD_MS);
    const [oldest] = wrongAt;
    if (oldest !== undefined && wrongAt.length >= WRONG_MAX) {
      const seconds = Math.ceil((oldest + PERIOD_MS - now) / 1000);
      throw new Refusal(429, 'TOO_MANY_ATTEMPTS', `Too many wrong tokens. Try again in ${seconds} seconds.`, {
        'retry-after': String(seconds),
      });
    }
    // Behind all others: the first of the map is the one that has been quiet for longest.
    this.#wrongAt.delete(address);
    this.#wrongAt.set(address, [...wrongAt, now]);
    const [quietest = ''] = this.#wrongAt.keys();
    if (this.#wrongAt.size > ADDRESSES_MAX) this.#wrongAt.delete(quietest);
  }
}
