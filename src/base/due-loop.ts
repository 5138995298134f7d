// A background loop around things that come due: it deals with those that are, sleeps until the next one is, and looks
// again now and then in case it was not told of an earlier one.
import { type Clock, sleep } from './clock.js';
import type { DLogger } from './log.js';
import { Service } from './service.js';

export interface DueLoopOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  /** What is looked after, for the log. */
  readonly subject: string;
  /**
   * Deals with what is due and tells how long until the next one is; undefined if there is none. The loop is not stopped
   * before it has settled, so it ends soon after its signal aborts.
   */
  sweep(signal: AbortSignal): Promise<number | undefined>;
  /** The longest sleep. */
  readonly maxMs: number;
  /** How much later than due to look. */
  readonly graceMs?: number;
}

/** How long to wait after a sweep that failed. */
const FAILURE_PAUSE_MS = 1000;

export class DueLoop {
  readonly #options: DueLoopOptions;
  readonly #service: Service;
  #woken = new AbortController();

  constructor(options: DueLoopOptions) {
    this.#options = options;
    this.#service = new Service(
      (signal) => this.#run(signal),
      (error) => options.logger.error(error),
    );
  }

  start(): void {
    this.#service.start();
  }

  stop(): Promise<void> {
    return this.#service.stop();
  }

  /** Something may come due earlier than was known. */
  lookAgain(): void {
    this.#woken.abort();
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, maxMs, graceMs = 0 } = this.#options;
    while (!signal.aborted) {
      this.#woken = new AbortController();
      const begunAt = clock.now();
      const nextMs = await this.#sweep(signal);
      // The sweep may have measured at its beginning: better a little early, to look again, than late.
      const dueMs = (nextMs ?? maxMs) - (clock.now() - begunAt);
      const delayMs = Math.min(Math.max(dueMs, 0) + graceMs, maxMs);
      if (delayMs <= 0) {
        await new Promise((resolve) => setImmediate(resolve));
        continue;
      }
      await sleep(clock, delayMs, AbortSignal.any([signal, this.#woken.signal])).catch(() => {
        // Woken early, or stopped; the loop's condition tells which.
      });
    }
  }

  async #sweep(signal: AbortSignal): Promise<number | undefined> {
    const { logger, subject } = this.#options;
    try {
      return await this.#options.sweep(signal);
    } catch (error) {
      if (!signal.aborted) logger.debug(`${subject} could not be looked up: ${(error as Error).message}`);
      return FAILURE_PAUSE_MS;
    }
  }
}
