// The matcher of the shared API, on top of `Cron`. It differs from DBOS's as `Cron` does: UTC by default, and each time of
// day once at daylight-saving transitions.
import { invariant } from '../../../kernel/base/assert.js';
import { parseCron, type Cron } from './cron.js';

/** Whether and when a cron pattern is due. */
export class TimeMatcher {
  readonly #cron: Cron;

  constructor(pattern: string, timezone?: string) {
    this.#cron = parseCron(pattern, { timeZone: timezone });
  }

  /** True during the whole second in which the pattern is due. */
  match(date: Date | number): boolean {
    return this.#cron.matches(Math.floor(Number(date) / 1000) * 1000);
  }

  /** The first time the pattern is due after a date. */
  nextWakeupTime(date: Date | number): Date {
    const due = this.#cron.next(Number(date));
    invariant(due !== undefined, 'a pattern that was accepted is due again within a century');
    return new Date(due);
  }
}
