// Deletes what data sources keep of workflows that have ended: off the path of any workflow, and many at a time.
import { type Clock, sleep, type Timer } from '../../base/clock.js';
import type { DLogger } from '../../base/log.js';
import { Service } from '../../base/service.js';
import { hasOutcome } from '../../model/status.js';
import type { Database } from '../../store/database.js';
import { findWorkflows } from '../../store/runs/workflows.js';
import type { DataSourceTransactionHandler } from './transactions.js';

export interface RecordDeletionsOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  /** The system database. */
  readonly database: Database;
}

/** How long workflows are collected. */
const COLLECT_MS = 500;
/**
 * How long records are kept at least that a rival of the run may still come upon. Data sources let nobody record a step
 * later than that after a proof of ownership.
 */
const KEPT_MS = 60_000;
/** Workflows in one transaction at most. */
const BATCH_MAX = 1000;
/** Records that stay do no harm, so those beyond the bound are left. */
const BACKLOG_MAX = 50_000;

/** How long after the launch old records are looked for: what matters then is that workflows go on. */
const SWEEP_AFTER_MS = 10_000;
/** Workflows that are looked up at a time among those with records. */
const SWEEP_MAX = 200;
const SWEEP_PAUSE_MS = 50;

/** Some of the workflows whose records were to be deleted are running again. */
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
  /** What is to be kept for a while yet: added since the last turn, and before it. */
  #young: Waiting = new Map();
  #old: Waiting = new Map();
  #turn: Timer | undefined;
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

  /** The workflow has ended. With rivals, its records are kept until none of them can come any more. */
  add(handler: DataSourceTransactionHandler, workflowID: string, hasRivals: boolean): void {
    if (!handler.deleteCheckpoints && !handler.deleteCheckpointsOfAll) return;
    const waiting = hasRivals ? this.#young : this.#waiting;
    const workflowIDs = waiting.get(handler) ?? new Set();
    if (workflowIDs.size < BACKLOG_MAX) workflowIDs.add(workflowID);
    waiting.set(handler, workflowIDs);
    if (hasRivals) this.#turn ??= this.#options.clock.after(KEPT_MS, () => this.#passTurn());
    else this.#timer ??= this.#options.clock.after(COLLECT_MS, () => void this.flush());
  }

  /** What was old already has been kept for at least one turn. */
  #passTurn(): void {
    this.#turn = undefined;
    const ripe = this.#old;
    this.#old = this.#young;
    this.#young = new Map();
    if (this.#old.size > 0) this.#turn = this.#options.clock.after(KEPT_MS, () => this.#passTurn());
    for (const [handler, workflowIDs] of ripe) {
      for (const workflowID of workflowIDs) this.add(handler, workflowID, false);
    }
  }

  /** Looks for records of workflows that ended in processes that are gone. */
  start(handlers: readonly DataSourceTransactionHandler[]): void {
    this.#handlers = handlers;
    this.#sweeper.start();
  }

  /** Lets what is to be kept yet go: it is found when an engine is launched later. */
  async stop(): Promise<void> {
    await this.#sweeper.stop();
    this.#turn?.cancel();
    this.#turn = undefined;
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

  /** Deletes at once what is kept of these workflows, if they do not run. Never rejects. */
  async now(handler: DataSourceTransactionHandler, workflowIDs: Iterable<string>): Promise<void> {
    const all = [...workflowIDs];
    while (all.length > 0) await this.#delete(handler, all.splice(0, BATCH_MAX));
  }

  /** Deletes what waits and need not be kept. Never rejects. */
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

  /** The look comes between the deletion and its commit: what a later run records is not among what was deleted. */
  async #deleteIfEnded(handler: DataSourceTransactionHandler, workflowIDs: readonly string[]): Promise<void> {
    const assertEnded = async (): Promise<void> => {
      const found = await findWorkflows(this.#options.database, workflowIDs);
      const running = found.filter(({ status }) => !hasOutcome(status));
      if (running.length > 0) throw new StillRunning(new Set(running.map(({ workflowID }) => workflowID)));
    };
    if (handler.deleteCheckpointsOfAll) return handler.deleteCheckpointsOfAll(workflowIDs, assertEnded);
    // Not every plugin heeds the look that it is given.
    await assertEnded();
    for (const workflowID of workflowIDs) await handler.deleteCheckpoints?.(workflowID, 0, assertEnded);
  }
}
