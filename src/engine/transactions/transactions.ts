// What an engine does for all its transactions together: opens and closes the data sources, and deletes completion records
// that are no longer needed.
import type { Clock } from '../../base/clock.js';
import { isSameDatabase, type Query } from '../../store/transactions/shared-database.js';
import type { Run } from '../runs/run.js';
import type { Runs } from '../runs/runs.js';
import type { Runtime } from '../runtime.js';
import type { DataSourceTransactionHandler } from './data-source-handler.js';
import { RecordDeletions } from './record-deletions.js';

/** How long a shutdown waits for each. */
const CLOSE_MAX_MS = 5_000;

export class Transactions {
  readonly #runtime: Runtime;
  readonly #deletions: RecordDeletions;
  readonly #shared = new Map<object, boolean>();
  readonly #opened: DataSourceTransactionHandler[] = [];

  constructor(runtime: Runtime, runs: Runs) {
    this.#runtime = runtime;
    const { clock, database, logger } = runtime;
    this.#deletions = new RecordDeletions({ clock, logger, database });
    runs.observe({
      onEnded: (run, isRecorded) => {
        if (isRecorded) this.#forget(run);
      },
    });
  }

  /** Whether a data source works on the system database. The answer is cached; a failure is not. */
  async isShared(source: object, query: Query): Promise<boolean> {
    const known = this.#shared.get(source);
    if (known !== undefined) return known;
    const isShared = await isSameDatabase(this.#runtime.database, query);
    this.#shared.set(source, isShared);
    return isShared;
  }

  /** Deletes what all data sources keep of a workflow from a step on: these steps will run again. */
  async deleteFrom(workflowID: string, startStep: number, assertEnded: () => Promise<void>): Promise<void> {
    for (const handler of this.#runtime.registry.dataSources.values()) {
      await handler.deleteCheckpoints?.(workflowID, startStep, assertEnded);
    }
  }

  /** The workflows were deleted: their IDs may be used again. A run of theirs may still leave a record. */
  async forgetDeleted(workflowIDs: readonly string[]): Promise<void> {
    for (const handler of this.#runtime.registry.dataSources.values()) {
      await this.#deletions.now(handler, workflowIDs);
      for (const workflowID of workflowIDs) this.#deletions.add(handler, workflowID, true);
    }
  }

  /** The outcome of the run is durable: the records of its steps in data sources are no longer needed. */
  #forget({ workflowID, dataSources, mayHaveConcurrentOwner }: Run): void {
    for (const handler of dataSources ?? []) this.#deletions.add(handler, workflowID, mayHaveConcurrentOwner);
  }

  /** Lets all data sources connect, and starts to look for records that dead processes have left there. */
  async start(): Promise<void> {
    for (const handler of this.#runtime.registry.dataSources.values()) {
      // Before it can fail: it may have connected by then.
      this.#opened.push(handler);
      await handler.initialize();
    }
    this.#deletions.start(this.#opened);
  }

  /** Flushes pending deletions and lets all data sources close, within a time limit each. */
  async stop(): Promise<void> {
    const { clock, logger } = this.#runtime;
    await atMost(clock, this.#deletions.stop());
    for (const handler of this.#opened.splice(0)) {
      const closed = handler.destroy().catch((error: unknown) => {
        logger.warn(`Data source "${handler.name}" could not be closed: ${String(error)}`);
      });
      // A function that never ends keeps its connection.
      await atMost(clock, closed);
    }
  }
}

/** Waits for a promise that does not reject, with a time limit. */
async function atMost(clock: Clock, promise: Promise<unknown>): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = clock.after(CLOSE_MAX_MS, resolve);
    void promise.then(() => {
      timer.cancel();
      resolve();
    });
  });
}
