// The service for transactions: opens and closes the data sources, and deletes completion records that are no longer
// needed.
import { invariant } from '../../kernel/base/assert.js';
import type { Timer } from '../../kernel/base/clock.js';
import type { Deadline } from '../../kernel/base/time-limit.js';
import type { MaybePromise } from '../../kernel/codec/maybe-promise.js';
import type { CompletionRecords } from '../../operator/operator.js';
import { isSameDatabase, type Query } from '../../database/transactions/shared-database.js';
import { readSystemID } from '../../database/transactions/system-identity.js';
import type { Run } from '../../run/run.js';
import type { Runs } from '../../run/runs.js';
import type { Runtime } from '../../run/runtime.js';
import type { DataSourceTransactionHandler } from './data-source-handler.run.js';
import { CompletionCleanup } from './completion-cleanup.run.js';

/**
 * How long a function may go on in its transaction after its run was halted. It cannot commit. A function that does more is
 * not cut off lightly: with some clients its next statement would commit by itself.
 */
const HALTED_MAX_MS = 60_000;

export class Transactions implements CompletionRecords {
  readonly #runtime: Runtime;
  readonly #cleanup: CompletionCleanup;
  readonly #shared = new Map<object, boolean>();
  readonly #opened: DataSourceTransactionHandler[] = [];
  /** Until functions of halted runs are given up. */
  readonly #timers = new Set<Timer>();
  #systemID: string | undefined;

  constructor(runtime: Runtime, runs: Runs) {
    this.#runtime = runtime;
    const { clock, database, logger } = runtime;
    this.#cleanup = new CompletionCleanup({ clock, logger, database });
    runs.observe({
      onEnded: (run, isRecorded) => {
        if (isRecorded) this.#forget(run);
      },
    });
  }

  /** The identity of the system database. */
  get systemID(): string {
    invariant(this.#systemID !== undefined, 'transactions run after the start');
    return this.#systemID;
  }

  /** Whether a data source is on the system database. Answers are cached, failures are not. */
  isShared(source: object, query: Query): MaybePromise<boolean> {
    return this.#shared.get(source) ?? this.#findOut(source, query);
  }

  async #findOut(source: object, query: Query): Promise<boolean> {
    const isShared = await isSameDatabase(this.#runtime.database, query);
    this.#shared.set(source, isShared);
    return isShared;
  }

  /**
   * The promise of a function in a transaction. Once the run is halted, the function may await an operation, which never
   * settles: the transaction must not stay open for that.
   */
  endWith<T>(run: Run, called: Promise<T>): Promise<T> {
    const { clock } = this.#runtime;
    return new Promise((resolve, reject) => {
      let timer: Timer | undefined;
      const onStop = (): void => {
        const { isHalted, stopReason } = run;
        if (!isHalted || !stopReason) return;
        timer = clock.after(HALTED_MAX_MS, () => reject(stopReason));
        this.#timers.add(timer);
      };
      const disarm = (): void => {
        run.signal.removeEventListener('abort', onStop);
        if (!timer) return;
        timer.cancel();
        this.#timers.delete(timer);
      };
      run.signal.addEventListener('abort', onStop, { once: true });
      called.then(resolve, reject);
      called.then(disarm, disarm);
    });
  }

  /** The steps from this one on will run again. Records of our own data sources say that they are of the past. */
  async deleteFrom(workflowID: string, startStep: number, assertEnded: () => Promise<void>): Promise<void> {
    for (const handler of this.#runtime.registry.dataSources.values()) {
      if (handler.deleteUnmarked) await handler.deleteUnmarked([workflowID], startStep, assertEnded);
      else await handler.deleteCheckpoints?.(workflowID, startStep, assertEnded);
    }
  }

  /** The IDs may be reused at once. A run of the workflows may still write a record, or conflict with one; hence `add`. */
  async forgetDeleted(workflowIDs: readonly string[]): Promise<void> {
    for (const handler of this.#runtime.registry.dataSources.values()) {
      await this.#cleanup.deleteReusable(handler, workflowIDs);
      for (const workflowID of workflowIDs) this.#cleanup.add(handler, workflowID, true);
    }
  }

  /** The outcome is durable: the completion records of the steps are no longer needed. */
  #forget({ workflowID, dataSources, mayHaveConcurrentOwner }: Run): void {
    for (const handler of dataSources ?? []) this.#cleanup.add(handler, workflowID, mayHaveConcurrentOwner);
  }

  /** Opens all data sources, and starts the search for records that dead processes have left. */
  async start(): Promise<void> {
    const { database, registry } = this.#runtime;
    this.#systemID = registry.dataSources.size > 0 ? await readSystemID(database) : '';
    for (const handler of registry.dataSources.values()) {
      // Before it can fail: it may have connected by then and must be closed.
      this.#opened.push(handler);
      await handler.initialize();
    }
    this.#cleanup.start(this.#opened, this.#systemID);
  }

  /** Flushes pending deletions and closes all data sources. */
  async stop(deadline: Deadline): Promise<void> {
    const { logger } = this.#runtime;
    for (const timer of this.#timers) timer.cancel();
    await deadline.within(deadline.leftMs / 2).settles(this.#cleanup.stop());
    // Closing waits for a connection whose function may never return.
    const closing = this.#opened.splice(0).map(async (handler) => {
      try {
        if (!(await deadline.settles(handler.destroy())))
          logger.warn(`Data source "${handler.name}" could not be closed in time.`);
      } catch (error) {
        logger.warn(`Cannot close data source "${handler.name}": ${String(error)}`);
      }
    });
    await Promise.all(closing);
  }
}
