// A background loop for work that comes due. It processes what is due, sleeps until the next item is, and checks now and
// then in case it missed a wake-up for an earlier one.
import { type Clock, sleep } from './clock.js';
import type { DLogger } from './log.js';
import { Service } from './service.js';

export interface DueLoopOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  /** What the loop processes, for the log. */
  readonly subject: string;
  /**
   * Processes what is due. Returns how long until the next item is due; undefined if there is none. `stop` waits for it,
   * so it must return soon after its signal aborts.
   */
  sweep(signal: AbortSignal): Promise<number | undefined>;
  /** The longest sleep. */
  readonly maxMs: number;
  /** Added to each sleep. */
  readonly graceMs?: number;
}

/** Two clocks measure when an item is due. This far apart they still mean the same one. */
const KNOWN_WITHIN_MS = 100;
/** Sleep after a failed sweep. */
const FAILURE_PAUSE_MS = 1000;

export class DueLoop {
  readonly #options: DueLoopOptions;
  readonly #service: Service;
  #woken = new AbortController();
  /** When the sleep ends; Infinity during a sweep, which may have looked too early. */
  #sleepsUntil = Infinity;

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

  /** Wakes the loop: an item may be due earlier than known. */
  wake(): void {
    // With a reason: the default one is an error with a stack, made anew by each call.
    this.#woken.abort('woken');
  }

  /** Wakes the loop if it would sleep past an item that is due in this time. NaN, as of a damaged row, is no time. */
  wakeFor(dueMs: number): void {
    if (Number.isNaN(dueMs)) return;
    const { clock, graceMs = 0 } = this.#options;
    const isKnown = dueMs > 0 && clock.monotonic() + dueMs + graceMs >= this.#sleepsUntil - KNOWN_WITHIN_MS;
    if (!isKnown) this.wake();
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, maxMs, graceMs = 0 } = this.#options;
    while (!signal.aborted) {
      this.#woken = new AbortController();
      this.#sleepsUntil = Infinity;
      const begunAt = clock.monotonic();
      const nextMs = await this.#sweep(signal);
      // The sweep may have measured when it began: wake early and sweep again, rather than late.
      const dueMs = (nextMs ?? maxMs) - (clock.monotonic() - begunAt);
      const delayMs = Number.isNaN(dueMs) ? maxMs : Math.min(Math.max(dueMs, 0) + graceMs, maxMs);
      if (delayMs <= 0) {
        await new Promise((resolve) => setImmediate(resolve));
        continue;
      }
      this.#sleepsUntil = clock.monotonic() + delayMs;
      await sleep(clock, delayMs, AbortSignal.any([signal, this.#woken.signal])).catch(() => {
        // Woken or stopped; the loop's condition tells which.
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
