// Waiting for workflows to end, wherever they run. All waiters of the process share one query. It is asked when
// somebody begins to wait, when a wake-up says that there is news, and now and then in case a wake-up was lost.
import { type Clock, sleep } from '../base/clock.js';
import type { DLogger } from '../base/log.js';
import { Service } from '../base/service.js';
import type { FinishedWorkflow } from '../store/workflows.js';

export interface OutcomeWatchOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  /** Those of the workflows that have ended. */
  look(workflowIDs: readonly string[]): Promise<readonly FinishedWorkflow[]>;
  /** Lets other processes know that somebody here waits. */
  announce(workflowID: string): void;
  readonly pollMs: number;
}

interface Waiter {
  resolve(finished: FinishedWorkflow): void;
  reject(error: Error): void;
}

export class OutcomeWatch {
  readonly #options: OutcomeWatchOptions;
  readonly #waiters = new Map<string, Set<Waiter>>();
  readonly #toLookUp = new Set<string>();
  readonly #service: Service;
  #isLooking = false;
  #stopReason: Error | undefined;

  constructor(options: OutcomeWatchOptions) {
    this.#options = options;
    this.#service = new Service(
      (signal) => this.#poll(signal),
      (error) => options.logger.error(error),
    );
  }

  /** Rejects whoever still waits, and whoever wants to from now on. */
  async stop(reason: Error): Promise<void> {
    this.#stopReason = reason;
    for (const waiters of this.#waiters.values()) for (const waiter of waiters) waiter.reject(reason);
    this.#waiters.clear();
    await this.#service.stop();
  }

  /** Resolves when the workflow has ended; rejects with the signal's reason when that aborts first. */
  wait(workflowID: string, signal?: AbortSignal): Promise<FinishedWorkflow> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason as Error);
      if (this.#stopReason) return reject(this.#stopReason);
      const done = (): void => signal?.removeEventListener('abort', onAbort);
      const waiter: Waiter = {
        resolve(finished) {
          done();
          resolve(finished);
        },
        reject(error) {
          done();
          reject(error);
        },
      };
      const onAbort = (): void => {
        this.#remove(workflowID, waiter);
        reject(signal?.reason as Error);
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      const waiters = this.#waiters.get(workflowID) ?? new Set();
      this.#waiters.set(workflowID, waiters.add(waiter));
      this.#options.announce(workflowID);
      this.#service.start();
      this.wake(workflowID);
    });
  }

  /** There may be news of this workflow, or of any. */
  wake(workflowID?: string): void {
    if (workflowID === undefined) for (const id of this.#waiters.keys()) this.#toLookUp.add(id);
    else if (this.#waiters.has(workflowID)) this.#toLookUp.add(workflowID);
    if (this.#toLookUp.size === 0 || this.#isLooking) return;
    this.#isLooking = true;
    // At the end of the turn, so that all who begin to wait in it share the query.
    setImmediate(() => void this.#look());
  }

  async #look(): Promise<void> {
    try {
      while (this.#toLookUp.size > 0) {
        const workflowIDs = [...this.#toLookUp];
        this.#toLookUp.clear();
        for (const finished of await this.#options.look(workflowIDs)) this.#tell(finished);
      }
    } catch (error) {
      this.#options.logger.debug(`Outcomes could not be looked up, trying again soon: ${(error as Error).message}`);
    } finally {
      this.#isLooking = false;
    }
  }

  #tell(finished: FinishedWorkflow): void {
    const waiters = this.#waiters.get(finished.workflowID);
    this.#waiters.delete(finished.workflowID);
    for (const waiter of waiters ?? []) waiter.resolve(finished);
  }

  #remove(workflowID: string, waiter: Waiter): void {
    const waiters = this.#waiters.get(workflowID);
    waiters?.delete(waiter);
    if (waiters?.size === 0) this.#waiters.delete(workflowID);
  }

  /** Runs only while somebody waits. */
  async #poll(signal: AbortSignal): Promise<void> {
    const { clock, pollMs } = this.#options;
    while (this.#waiters.size > 0) {
      await sleep(clock, pollMs * (0.75 + Math.random() / 2), signal);
      for (const workflowID of this.#waiters.keys()) this.#options.announce(workflowID);
      this.wake();
    }
  }
}
