// Takes workflows from the queues that this engine serves and runs them. It claims when work is announced, when a slot
// becomes free, and now and then in case an announcement was lost.
import { type Clock, sleep } from '../base/clock.js';
import type { DLogger } from '../base/log.js';
import { Service } from '../base/service.js';

export interface DispatcherOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  /** The queues to serve now. */
  queues(): readonly string[];
  /** How many more workflows this engine may run. */
  capacity(): number;
  /** Claims at most `limit` workflows of the queue, begins to run them, and tells how many they were. */
  claim(queueName: string, limit: number): Promise<number>;
  readonly pollMs: number;
}

/** Workflows claimed by one statement at most; more are claimed right after. */
const CLAIM_MAX = 1000;
/** How long to wait after a claim that failed. */
const FAILURE_PAUSE_MS = 500;

export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #service: Service;
  readonly #announced = new Set<string>();
  #wakeUp: (() => void) | undefined;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#service = new Service(
      (signal) => this.#serve(signal),
      (error) => options.logger.error(error),
    );
  }

  start(): void {
    this.#service.start();
  }

  stop(): Promise<void> {
    return this.#service.stop();
  }

  /** There may be work in this queue, or in any. */
  wake(queueName?: string): void {
    const served = this.#options.queues();
    if (queueName === undefined) for (const name of served) this.#announced.add(name);
    else if (served.includes(queueName)) this.#announced.add(queueName);
    if (this.#announced.size > 0) this.#wakeUp?.();
  }

  /** A workflow has ended: what had to wait for room can be claimed. */
  proceed(): void {
    if (this.#announced.size > 0) this.#wakeUp?.();
  }

  async #serve(signal: AbortSignal): Promise<void> {
    this.wake();
    while (!signal.aborted) {
      await this.#claimAnnounced(signal);
      if (this.#announced.size === 0 || this.#options.capacity() <= 0) await this.#rest(signal);
    }
  }

  async #claimAnnounced(signal: AbortSignal): Promise<void> {
    for (const queueName of [...this.#announced]) {
      const limit = Math.min(this.#options.capacity(), CLAIM_MAX);
      if (signal.aborted || limit <= 0) return;
      this.#announced.delete(queueName);
      try {
        // A full claim leaves more behind, most likely.
        if ((await this.#options.claim(queueName, limit)) >= limit) this.#announced.add(queueName);
      } catch (error) {
        this.#options.logger.warn(`Queue "${queueName}" cannot be served at the moment: ${(error as Error).message}`);
        this.#announced.add(queueName);
        await sleep(this.#options.clock, FAILURE_PAUSE_MS, signal);
      }
    }
  }

  /** Sleeps until woken, at most until it is time to look without being asked. */
  async #rest(signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    this.#wakeUp = () => woken.abort();
    const { clock, pollMs } = this.#options;
    const isTimeUp = await sleep(
      clock,
      pollMs * (0.75 + Math.random() / 2),
      AbortSignal.any([signal, woken.signal]),
    ).then(
      () => true,
      () => false,
    );
    this.#wakeUp = undefined;
    if (isTimeUp) this.wake();
  }
}
