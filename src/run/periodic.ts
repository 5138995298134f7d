// The base of services that look at something at intervals. A round that fails is reported, and the next one comes.
import { sleep } from '../kernel/base/clock.js';
import { Service } from '../kernel/base/service.js';
import type { Runtime } from './runtime.js';

export interface Rhythm {
  /** The delay before the first round. */
  readonly firstMs: number;
  readonly everyMs: number;
  /** Varies the intervals by a quarter, so that engines launched together do not all look at once. */
  readonly hasJitter?: boolean;
}

export abstract class Periodic {
  protected readonly runtime: Runtime;
  readonly #rhythm: Rhythm;
  readonly #service: Service;

  constructor(runtime: Runtime, rhythm: Rhythm) {
    this.runtime = runtime;
    this.#rhythm = rhythm;
    this.#service = new Service(
      (signal) => this.#loop(signal),
      (error) => runtime.logger.error(error),
    );
  }

  /** One round. False ends the service: there is nothing to look for. */
  protected abstract look(signal: AbortSignal): Promise<boolean | void>;

  protected abstract reportFailure(error: unknown): void;

  start(): void {
    this.#service.start();
  }

  stop(): Promise<void> {
    return this.#service.stop();
  }

  async #loop(signal: AbortSignal): Promise<void> {
    const { firstMs, everyMs, hasJitter = false } = this.#rhythm;
    for (let delayMs = firstMs; ; delayMs = everyMs) {
      const factor = hasJitter && delayMs === everyMs ? 0.75 + Math.random() / 2 : 1;
      if (delayMs > 0) await sleep(this.runtime.clock, delayMs * factor, signal);
      try {
        if ((await this.look(signal)) === false) return;
      } catch (error) {
        if (signal.aborted) return;
        this.reportFailure(error);
      }
    }
  }
}
