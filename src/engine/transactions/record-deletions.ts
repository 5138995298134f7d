// Deletes the records of ended workflows in data sources: in the background, and in batches.
import { type Clock, sleep, type Timer } from '../../base/clock.js';
import type { DLogger } from '../../base/log.js';
import { Service } from '../../base/service.js';
import { hasOutcome } from '../../model/status.js';
import type { Database } from '../../store/database.js';
import { findWorkflows } from '../../store/runs/workflows.js';
import type { DataSourceTransactionHandler } from './data-source-handler.js';

export interface RecordDeletionsOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  /** The system database. */
  readonly database: Database;
}

/** How long workflows are collected. */
const COLLECT_MS = 500;
/**
 * How long records are kept at least if a concurrent owner may still run into them. Data sources refuse to record a step
 * later than that after ownership was checked.
 */
const KEPT_MS = 60_000;
/** Workflows in one transaction at most. */
const BATCH_MAX = 1000;
/** Records that stay do no harm, so those beyond the bound are left. */
const BACKLOG_MAX = 50_000;

/** When the search for old records begins after the launch. Workflows come first. */
const SWEEP_AFTER_MS = 10_000;
/** Workflows that are looked up at a time among those with records. */
const SWEEP_MAX = 200;
const SWEEP_PAUSE_MS = 50;

/** Some of the workflows whose records were about to be deleted are running again. */
class StillRunning extends Error {
  constructor(readonly workflowIDs: ReadonlySet<string>) {
    super('a workflow runs again');
  }
}

type Waiting = Map<DataSourceTransactionHandler, Set<string>>;

export class RecordDeletions {
  readonly #options: RecordDeletionsOptions;
  #waiting: Waiting = new Map();
  #timer: Timer | undefined;
  /** What is kept for a while yet: added since the last rotation, and before it. */
  #young: Waiting = new Map();
  #old: Waiting = new Map();
  #rotation: Timer | undefined;
  #handlers: readonly DataSourceTransactionHandler[] = [];
  readonly #sweeper: Service;
  #last: Promise<void> = Promise.resolve();

  constructor(options: RecordDeletionsOptions) {
    this.#options = options;
    this.#sweeper = new Service(
      (signal) => this.#sweep(signal),
      (error) => options.logger.debug(`Old checkpoints of data sources could not be looked up: ${String(error)}`),
    );
  }

  /** The workflow has ended. If it may have a concurrent owner, its records are kept until that one cannot commit any more. */
  add(handler: DataSourceTransactionHandler, workflowID: string, mayHaveConcurrentOwner: boolean): void {
    if (!handler.deleteCheckpoints && !handler.deleteCheckpointsOfAll) return;
    const waiting = mayHaveConcurrentOwner ? this.#young : this.#waiting;
    const workflowIDs = waiting.get(handler) ?? new Set();
    if (workflowIDs.size < BACKLOG_MAX) workflowIDs.add(workflowID);
    waiting.set(handler, workflowIDs);
    if (mayHaveConcurrentOwner) this.#rotation ??= this.#options.clock.after(KEPT_MS, () => this.#rotate());
    else this.#timer ??= this.#options.clock.after(COLLECT_MS, () => void this.flush());
  }

  /** What was old already has been kept for at least one whole period. */
  #rotate(): void {
    this.#rotation = undefined;
    const ripe = this.#old;
    this.#old = this.#young;
    this.#young = new Map();
    if (this.#old.size > 0) this.#rotation = this.#options.clock.after(KEPT_MS, () => this.#rotate());
    for (const [handler, workflowIDs] of ripe) {
      for (const workflowID of workflowIDs) this.add(handler, workflowID, false);
    }
  }

  /** Starts to look for records of workflows that ended in dead processes. */
  start(handlers: readonly DataSourceTransactionHandler[]): void {
    this.#handlers = handlers;
    this.#sweeper.start();
  }

  /** Drops what has to be kept yet: the search after a later launch finds it. */
  async stop(): Promise<void> {
    await this.#sweeper.stop();
    this.#rotation?.cancel();
    this.#rotation = undefined;
    await this.flush();
  }

  async #sweep(signal: AbortSignal): Promise<void> {
    await sleep(this.#options.clock, SWEEP_AFTER_MS, signal);
    for (const handler of this.#handlers) {
      let workflowIDs: readonly string[] | undefined;
      while (handler.listRecorded && (!workflowIDs || workflowIDs.length === SWEEP_MAX)) {
        workflowIDs = await handler.listRecorded(workflowIDs?.at(-1) ?? '', SWEEP_MAX);
        const found = await findWorkflows(this.#options.database, workflowIDs);
        for (const { workflowID } of found.filter(({ status }) => hasOutcome(status)))
          this.add(handler, workflowID, true);
        await sleep(this.#options.clock, SWEEP_PAUSE_MS, signal);
      }
    }
  }

  /** Deletes the records of these workflows now, except of those that are running. Never rejects. */
  async now(handler: DataSourceTransactionHandler, workflowIDs: Iterable<string>): Promise<void> {
    const all = [...workflowIDs];
    while (all.length > 0) await this.#delete(handler, all.splice(0, BATCH_MAX));
  }

  /** Deletes what was collected. Never rejects. */
  flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const taken = this.#waiting;
    this.#waiting = new Map();
    this.#last = this.#last.then(async () => {
      for (const [handler, workflowIDs] of taken) await this.now(handler, workflowIDs);
    });
    return this.#last;
  }

  async #delete(handler: DataSourceTransactionHandler, workflowIDs: readonly string[]): Promise<void> {
    try {
      await this.#deleteIfEnded(handler, workflowIDs);
    } catch (error) {
      const left = error instanceof StillRunning ? workflowIDs.filter((id) => !error.workflowIDs.has(id)) : [];
      if (left.length > 0 && left.length < workflowIDs.length) return this.#delete(handler, left);
      this.#options.logger.debug(`Data source "${handler.name}" keeps some checkpoints: ${String(error)}`);
    }
  }

  /** The check comes between the deletion and its commit: what a later run records is not among what was deleted. */
  async #deleteIfEnded(handler: DataSourceTransactionHandler, workflowIDs: readonly string[]): Promise<void> {
    const assertEnded = async (): Promise<void> => {
      const found = await findWorkflows(this.#options.database, workflowIDs);
      const running = found.filter(({ status }) => !hasOutcome(status));
      if (running.length > 0) throw new StillRunning(new Set(running.map(({ workflowID }) => workflowID)));
    };
    if (handler.deleteCheckpointsOfAll) return handler.deleteCheckpointsOfAll(workflowIDs, assertEnded);
    // Not every plugin calls the check that it is given.
    await assertEnded();
    for (const workflowID of workflowIDs) await handler.deleteCheckpoints?.(workflowID, 0, assertEnded);
  }
}
