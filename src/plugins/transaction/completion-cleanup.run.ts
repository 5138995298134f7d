// Deletes the completion records of ended workflows from data sources, in the background and in batches.
import { type Clock, sleep, type Timer } from '../../kernel/base/clock.js';
import type { DLogger } from '../../kernel/base/log.js';
import { Service } from '../../kernel/base/service.js';
import type { WorkflowRecord } from '../../kernel/workflow/records.js';
import { hasOutcome } from '../../kernel/workflow/status.js';
import type { Database } from '../../database/database.js';
import { findWorkflows } from '../../run/rows/workflows.js';
import type { DataSourceTransactionHandler, RecordedWorkflow } from './data-source-handler.run.js';

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
const SWEEP_EVERY_MS = 10 * 60_000;
/** Workflows per query of the search. */
const SWEEP_MAX = 200;
const SWEEP_PAUSE_MS = 50;

/** Records that were about to be deleted are still needed. */
class StillNeeded extends Error {
  constructor(readonly workflowIDs: ReadonlySet<string>) {
    super('a workflow runs again, or has had another owner');
  }
}

type Pending = Map<DataSourceTransactionHandler, Set<string>>;

export class CompletionCleanup {
  readonly #options: CompletionCleanupOptions;
  /** Records to be deleted: of workflows with one owner, and those that were kept long enough. */
  #sole: Pending = new Map();
  #ripe: Pending = new Map();
  #timer: Timer | undefined;
  /** Records to be kept for RETENTION_MS: added since the last rotation, and before it. */
  #young: Pending = new Map();
  #old: Pending = new Map();
  #rotation: Timer | undefined;
  #handlers: readonly DataSourceTransactionHandler[] = [];
  #systemID = '';
  readonly #sweeper: Service;
  #last: Promise<void> = Promise.resolve();

  constructor(options: CompletionCleanupOptions) {
    this.#options = options;
    this.#sweeper = new Service(
      (signal) => this.#sweepRepeatedly(signal),
      (error) => options.logger.warn(`The search for old completion records has ended: ${String(error)}`),
    );
  }

  /** The workflow has ended. If it may have a concurrent owner, its records are kept until that one can't commit. */
  add(handler: DataSourceTransactionHandler, workflowID: string, mayHaveConcurrentOwner: boolean): void {
    if (!handler.deleteCheckpoints && !handler.deleteCheckpointsOfAll) return;
    const pending = mayHaveConcurrentOwner ? this.#young : this.#sole;
    const workflowIDs = pending.get(handler) ?? new Set();
    if (workflowIDs.size < BACKLOG_MAX) workflowIDs.add(workflowID);
    pending.set(handler, workflowIDs);
    if (mayHaveConcurrentOwner) this.#rotation ??= this.#options.clock.after(RETENTION_MS, () => this.#rotate());
    else this.#flushSoon();
  }

  #flushSoon(): void {
    this.#timer ??= this.#options.clock.after(COLLECT_MS, () => void this.flush());
  }

  /** What was in `#old` already has been kept for at least one whole period. */
  #rotate(): void {
    this.#rotation = undefined;
    for (const [handler, workflowIDs] of this.#old) {
      this.#ripe.set(handler, new Set([...(this.#ripe.get(handler) ?? []), ...workflowIDs]));
    }
    this.#old = this.#young;
    this.#young = new Map();
    if (this.#old.size > 0) this.#rotation = this.#options.clock.after(RETENTION_MS, () => this.#rotate());
    if (this.#ripe.size > 0) this.#flushSoon();
  }

  /** Starts the search for records that dead processes have left. */
  start(handlers: readonly DataSourceTransactionHandler[], systemID: string): void {
    this.#handlers = handlers;
    this.#systemID = systemID;
    this.#sweeper.start();
  }

  /** Drops what must be kept longer: the search after a later launch finds it. */
  async stop(): Promise<void> {
    await this.#sweeper.stop();
    await this.flush();
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#rotation?.cancel();
    this.#rotation = undefined;
  }

  async #sweepRepeatedly(signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#options;
    await sleep(clock, SWEEP_AFTER_MS, signal);
    for (;;) {
      for (const handler of this.#handlers) {
        await this.#sweep(handler, signal).catch((error: unknown) => {
          signal.throwIfAborted();
          logger.debug(`Cannot look up old completion records in data source "${handler.name}": ${String(error)}`);
        });
      }
      await sleep(clock, SWEEP_EVERY_MS, signal);
    }
  }

  async #sweep(handler: DataSourceTransactionHandler, signal: AbortSignal): Promise<void> {
    let recorded: readonly RecordedWorkflow[] | undefined;
    while (handler.listRecorded && (!recorded || recorded.length === SWEEP_MAX)) {
      recorded = await handler.listRecorded(recorded?.at(-1)?.workflowID ?? '', SWEEP_MAX);
      for (const workflowID of await this.#findUnneeded(recorded)) this.add(handler, workflowID, true);
      await sleep(this.#options.clock, SWEEP_PAUSE_MS, signal);
    }
  }

  /** Those that have ended or were deleted. One of another system database, or of unknown origin, may be running there. */
  async #findUnneeded(recorded: readonly RecordedWorkflow[]): Promise<string[]> {
    const found = await findWorkflows(
      this.#options.database,
      recorded.map(({ workflowID }) => workflowID),
    );
    const statuses = new Map(found.map(({ workflowID, status }) => [workflowID, status]));
    const isUnneeded = ({ workflowID, systemID }: RecordedWorkflow): boolean => {
      const status = statuses.get(workflowID);
      return status === undefined ? systemID === this.#systemID : hasOutcome(status);
    };
    return recorded.filter(isUnneeded).map(({ workflowID }) => workflowID);
  }

  /** Deletes the records that new workflows with these IDs would take for their own. Never rejects. */
  async deleteReusable(handler: DataSourceTransactionHandler, workflowIDs: readonly string[]): Promise<void> {
    await this.#deleteAll({ handler, mustBeSole: false, isReuse: true }, workflowIDs);
  }

  /** Deletes the collected batch. Never rejects. */
  flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const [sole, ripe] = [this.#sole, this.#ripe];
    this.#sole = new Map();
    this.#ripe = new Map();
    this.#last = this.#last.then(async () => {
      for (const [handler, workflowIDs] of sole) await this.#deleteAll({ handler, mustBeSole: true }, [...workflowIDs]);
      for (const [handler, workflowIDs] of ripe)
        await this.#deleteAll({ handler, mustBeSole: false }, [...workflowIDs]);
    });
    return this.#last;
  }

  async #deleteAll(deletion: Deletion, workflowIDs: readonly string[]): Promise<void> {
    for (let first = 0; first < workflowIDs.length; first += BATCH_MAX) {
      await this.#deleteUnneeded(deletion, workflowIDs.slice(first, first + BATCH_MAX)).catch((error: unknown) => {
        const where = `data source "${deletion.handler.name}"`;
        this.#options.logger.debug(`Cannot delete completion records from ${where}: ${String(error)}`);
      });
    }
  }

  /** Checks between the deletion and its commit, so that nothing that a later run records can be among the deleted. */
  async #deleteUnneeded(deletion: Deletion, workflowIDs: readonly string[]): Promise<void> {
    try {
      await remove(deletion, workflowIDs, () => this.#assertUnneeded(deletion, workflowIDs));
    } catch (error) {
      const left = error instanceof StillNeeded ? workflowIDs.filter((id) => !error.workflowIDs.has(id)) : [];
      if (left.length === 0 || left.length === workflowIDs.length) throw error;
      await this.#deleteUnneeded(deletion, left);
    }
  }

  async #assertUnneeded({ handler, mustBeSole }: Deletion, workflowIDs: readonly string[]): Promise<void> {
    const found = await findWorkflows(this.#options.database, workflowIDs);
    const running = found.filter(({ status }) => !hasOutcome(status)).map(({ workflowID }) => workflowID);
    const sole = new Set(found.filter(wasNeverClaimed).map(({ workflowID }) => workflowID));
    // A run may believe that it was the only one and be wrong.
    const shared = mustBeSole ? workflowIDs.filter((workflowID) => !sole.has(workflowID)) : [];
    for (const workflowID of shared) this.add(handler, workflowID, true);
    const needed = new Set([...running, ...shared]);
    if (needed.size > 0) throw new StillNeeded(needed);
  }
}

interface Deletion {
  readonly handler: DataSourceTransactionHandler;
  /** Keeps the records of workflows that have had several owners, for now. */
  readonly mustBeSole: boolean;
  /** Deletes only what new workflows with the same IDs would take for their own. */
  readonly isReuse?: boolean;
}

/** A direct start stores one time as both; a claim changes the second. */
function wasNeverClaimed({ createdAt, startedAt, recoveryAttempts }: WorkflowRecord): boolean {
  return startedAt === createdAt && recoveryAttempts <= 1;
}

async function remove(
  { handler, isReuse }: Deletion,
  workflowIDs: readonly string[],
  assertUnneeded: () => Promise<void>,
): Promise<void> {
  if (isReuse && handler.deleteUnmarked) return handler.deleteUnmarked(workflowIDs, 0, assertUnneeded);
  if (handler.deleteCheckpointsOfAll) return handler.deleteCheckpointsOfAll(workflowIDs, assertUnneeded);
  // Not every plugin calls the check.
  await assertUnneeded();
  for (const workflowID of workflowIDs) await handler.deleteCheckpoints?.(workflowID, 0, assertUnneeded);
}
