// Deletes the completion records of ended workflows from data sources, in the background and in batches.
import { type Clock, sleep, type Timer } from '../../base/clock.js';
import type { DLogger } from '../../base/log.js';
import { Service } from '../../base/service.js';
import { hasOutcome } from '../../model/status.js';
import type { Database } from '../../store/database.js';
import { findWorkflows } from '../../store/runs/workflows.js';
import type { DataSourceTransactionHandler } from './data-source-handler.js';

export interface CompletionCleanupOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  /** The system database. */
  readonly database: Database;
}

/** How long workflows are collected into a batch. */
const COLLECT_MS = 500;
/**
 * The least time that records are kept if a concurrent owner may still try to commit the same step. Data sources allow
 * much less time between the ownership check and the record.
 */
const RETENTION_MS = 60_000;
/** Workflows per transaction. */
const BATCH_MAX = 1000;
/** A record that stays does no harm, so workflows beyond this bound are dropped. */
const BACKLOG_MAX = 50_000;

/** How long after launch the search for old records starts. Recovered workflows come first. */
const SWEEP_AFTER_MS = 10_000;
/** Workflows per query of the search. */
const SWEEP_MAX = 200;
const SWEEP_PAUSE_MS = 50;

/** Workflows whose records were about to be deleted are running again. */
class StillRunning extends Error {
  constructor(readonly workflowIDs: ReadonlySet<string>) {
    super('a workflow runs again');
  }
}

type Pending = Map<DataSourceTransactionHandler, Set<string>>;

export class CompletionCleanup {
  readonly #options: CompletionCleanupOptions;
  #pending: Pending = new Map();
  #timer: Timer | undefined;
  /** Records to be kept for RETENTION_MS: added since the last rotation, and before it. */
  #young: Pending = new Map();
  #old: Pending = new Map();
  #rotation: Timer | undefined;
  #handlers: readonly DataSourceTransactionHandler[] = [];
  readonly #sweeper: Service;
  #last: Promise<void> = Promise.resolve();

  constructor(options: CompletionCleanupOptions) {
    this.#options = options;
    this.#sweeper = new Service(
      (signal) => this.#sweep(signal),
      (error) => options.logger.debug(`Cannot look up old completion records: ${String(error)}`),
    );
  }

  /** The workflow has ended. If it may have a concurrent owner, its records are kept until that one can't commit. */
  add(handler: DataSourceTransactionHandler, workflowID: string, mayHaveConcurrentOwner: boolean): void {
    if (!handler.deleteCheckpoints && !handler.deleteCheckpointsOfAll) return;
    const pending = mayHaveConcurrentOwner ? this.#young : this.#pending;
    const workflowIDs = pending.get(handler) ?? new Set();
    if (workflowIDs.size < BACKLOG_MAX) workflowIDs.add(workflowID);
    pending.set(handler, workflowIDs);
    if (mayHaveConcurrentOwner) this.#rotation ??= this.#options.clock.after(RETENTION_MS, () => this.#rotate());
    else this.#timer ??= this.#options.clock.after(COLLECT_MS, () => void this.flush());
  }

  /** What was in `#old` already has been kept for at least one whole period. */
  #rotate(): void {
    this.#rotation = undefined;
    const ripe = this.#old;
    this.#old = this.#young;
    this.#young = new Map();
    if (this.#old.size > 0) this.#rotation = this.#options.clock.after(RETENTION_MS, () => this.#rotate());
    for (const [handler, workflowIDs] of ripe) {
      for (const workflowID of workflowIDs) this.add(handler, workflowID, false);
    }
  }

  /** Starts the search for records that dead processes have left. */
  start(handlers: readonly DataSourceTransactionHandler[]): void {
    this.#handlers = handlers;
    this.#sweeper.start();
  }

  /** Drops what must be kept longer: the search after a later launch finds it. */
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

  /** Deletes the records of these workflows, except of those that are running. Never rejects. */
  async deleteNow(handler: DataSourceTransactionHandler, workflowIDs: Iterable<string>): Promise<void> {
    const all = [...workflowIDs];
    while (all.length > 0) await this.#delete(handler, all.splice(0, BATCH_MAX));
  }

  /** Deletes the collected batch. Never rejects. */
  flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const taken = this.#pending;
    this.#pending = new Map();
    this.#last = this.#last.then(async () => {
      for (const [handler, workflowIDs] of taken) await this.deleteNow(handler, workflowIDs);
    });
    return this.#last;
  }

  async #delete(handler: DataSourceTransactionHandler, workflowIDs: readonly string[]): Promise<void> {
    try {
      await this.#deleteIfEnded(handler, workflowIDs);
    } catch (error) {
      const left = error instanceof StillRunning ? workflowIDs.filter((id) => !error.workflowIDs.has(id)) : [];
      if (left.length > 0 && left.length < workflowIDs.length) return this.#delete(handler, left);
      this.#options.logger.debug(
        `Cannot delete completion records from data source "${handler.name}": ${String(error)}`,
      );
    }
  }

  /** Checks between the deletion and its commit, so that nothing that a later run records can be among the deleted. */
  async #deleteIfEnded(handler: DataSourceTransactionHandler, workflowIDs: readonly string[]): Promise<void> {
    const assertEnded = async (): Promise<void> => {
      const found = await findWorkflows(this.#options.database, workflowIDs);
      const running = found.filter(({ status }) => !hasOutcome(status));
      if (running.length > 0) throw new StillRunning(new Set(running.map(({ workflowID }) => workflowID)));
    };
    if (handler.deleteCheckpointsOfAll) return handler.deleteCheckpointsOfAll(workflowIDs, assertEnded);
    // Not every plugin calls the check.
    await assertEnded();
    for (const workflowID of workflowIDs) await handler.deleteCheckpoints?.(workflowID, 0, assertEnded);
  }
}
