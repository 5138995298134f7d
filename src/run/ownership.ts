// Keeps the runs of this process consistent with the owner tokens in the database: stops runs that have lost their
// workflow, and requeues workflows that are owned here but not run. Notifies processes that wait for an outcome.
import type { Deadline } from '../kernel/base/time-limit.js';
import { RecentSet } from '../database/notify/recent-set.js';
import { DBOSWorkflowConflictError } from '../kernel/errors/errors.js';
import type { WorkflowRecord } from '../kernel/workflow/records.js';
import type { Executor } from '../database/database.js';
import { noteCluster } from '../features/history/epochs.sql.js';
import { topics } from '../database/notify/topics.js';
import { findOwnedBy, handBack, handBackIn, type Owned } from './rows/lifecycle.js';
import { isDivergedToken } from './rows/owner-tokens.js';
import { findLost } from './rows/owners.js';
import { findMissingSteps } from './rows/steps.js';
import { findWorkflows } from './rows/workflows.js';
import type { Runtime } from './runtime.js';
import type { Run } from './run.js';
import type { Runs } from './runs.js';
import { lossReasonFor } from './loss.js';

/** On SQLite a busy peer wakes us many times a second. */
const VERIFY_INTERVAL_MS = 250;
/** A claim or start has begun its run long before. */
const ORPHAN_AGE_MS = 20_000;
/** No statement of ours is that late. After a look at orphans of that age, there are none until a new token is made. */
const ORPHAN_AGE_MAX_MS = 600_000;
/** How many interests, and ends that were not sent, to remember at least. Waiters for older ones poll. */
const REMEMBERED_MAX = 10_000;

export class Ownership {
  readonly #runtime: Runtime;
  readonly #runs: Runs;
  /** Workflows whose outcome another process waits for. */
  readonly #interests = new RecentSet<string>(REMEMBERED_MAX);
  /** Workflows that ended without notice to others, whose interest may still be on its way. */
  readonly #ended = new RecentSet<string>(REMEMBERED_MAX);
  #unsubscribes: readonly (() => void)[] = [];
  /** The newest owner token of which it is known that it has left no orphan, nor those before it. */
  #lookedForUpTo: number | undefined;
  #isVerifying = false;
  /** Requested again while a query was in flight, which may have run too early. */
  #isVerifyWanted = false;

  constructor(runtime: Runtime, runs: Runs) {
    this.#runtime = runtime;
    this.#runs = runs;
    const { bus, store } = runtime;
    store.writer.onLate = (workflowIDs) => {
      for (const run of runs.of(workflowIDs)) run.doubtOwnership();
    };
    bus.filterOutgoing(topics.outcomes, (workflowID) => this.#isAwaited(workflowID));
    // A workflow has its run in one process. If it is this one, peers need no notification.
    bus.filterOutgoing(topics.changes, (workflowID) => !runs.has(workflowID));
    runs.observe({ onEnded: ({ workflowID }) => bus.publish(topics.outcomes, workflowID) });
  }

  start(): void {
    const { bus, database } = this.#runtime;
    database.onPromoted?.((tx) => this.#compare(tx));
    this.#unsubscribes = [
      bus.subscribe(topics.interest, (lists) => lists.flat().forEach((workflowID) => this.#addInterest(workflowID))),
      bus.subscribe(topics.changes, (workflowIDs, origin) => {
        const runs = this.#runs.of(workflowIDs);
        if (runs.length === 0) return;
        return origin === 'here' ? this.#stopLost(runs) : this.verify();
      }),
      bus.onAnything(() => void this.verify(), VERIFY_INTERVAL_MS),
    ];
  }

  /** Stops the remaining runs and puts their workflows back on their queues. */
  async stop(deadline: Deadline): Promise<void> {
    const { database, logger, store, bus, incarnationID } = this.#runtime;
    this.#runs.stopAll();
    // Leaves time for what follows, which can be done although a commit hangs.
    const writing = deadline.within(deadline.leftMs / 2).onPassed(() => void store.writer.abandon());
    try {
      await store.writer.idle();
      // Ask the database, not `#runs`: a child that was just being created has no run here.
      const owned = await findOwnedBy(database, incarnationID, 0);
      if (owned.length > 0) bus.publishAll(topics.work, await handBack(database, owned));
    } catch (error) {
      logger.warn(`Cannot put unfinished workflows back on their queues: ${String(error)}`);
    } finally {
      writing();
      for (const unsubscribe of this.#unsubscribes) unsubscribe();
    }
  }

  /** Stops the runs here that have lost their workflow. */
  async verify(signal?: AbortSignal): Promise<void> {
    this.#isVerifyWanted = true;
    if (this.#isVerifying) return;
    this.#isVerifying = true;
    try {
      while (this.#isVerifyWanted) {
        this.#isVerifyWanted = false;
        const running = this.#runs.all.filter((run) => run.isStored);
        if (running.length === 0) break;
        await this.#stopLost([...(await findLost(this.#runtime.database, running))], signal);
      }
    } catch (error) {
      this.#runtime.logger.debug(`Cannot verify the workflows running here: ${(error as Error).message}`);
    } finally {
      this.#isVerifying = false;
    }
  }

  /**
   * Hands back the workflows of runs that remember checkpoints which a promoted server lacks: their next checkpoints would
   * rest on them. Nothing else is written meanwhile, and what the runs write from then on is fenced. They are stopped after
   * the commit: if it fails, the next comparison has to find them again.
   */
  async #compare(tx: Executor): Promise<() => void> {
    const { bus, logger } = this.#runtime;
    const running = this.#runs.all.flatMap((run) =>
      run.lastRecordedStepID === undefined ? [] : [{ run, workflowID: run.workflowID, stepID: run.lastRecordedStepID }],
    );
    const lacking = running.length === 0 ? [] : await findMissingSteps(tx, running);
    const runs = lacking.map(({ run }) => run);
    const handedBack = runs.length === 0 ? [] : await handBackIn(tx, runs);
    return () => {
      void this.#noteCluster();
      bus.publishAll(topics.work, handedBack);
      for (const run of runs) this.#runs.stopLost(run, new DBOSWorkflowConflictError(run.workflowID));
      if (runs.length > 0)
        logger.warn(`${runs.length} workflows go back to their last checkpoint in the promoted database.`);
    };
  }

  async #noteCluster(): Promise<void> {
    const { database, logger } = this.#runtime;
    try {
      await this.#runtime.retrying(() => noteCluster(database));
    } catch (error) {
      logger.warn(`Those who follow the history may miss events until the next launch: ${(error as Error).message}`);
    }
  }

  /** Rereads the rows first: a workflow that was resumed may have a new run here already. */
  async #stopLost(runs: readonly Run[], signal?: AbortSignal): Promise<void> {
    const stored = runs.filter((run) => run.isStored);
    if (stored.length === 0) return;
    const workflows = await this.#find(stored, signal);
    for (const run of stored) {
      const reason = lossReasonFor(run, workflows.get(run.workflowID));
      if (reason) this.#runs.stopLost(run, reason);
    }
  }

  async #find(runs: readonly Run[], signal?: AbortSignal): Promise<ReadonlyMap<string, WorkflowRecord>> {
    const { database } = this.#runtime;
    const workflowIDs = runs.map(({ workflowID }) => workflowID);
    const found = await this.#runtime.retrying(() => findWorkflows(database, workflowIDs), signal);
    return new Map(found.map((workflow) => [workflow.workflowID, workflow]));
  }

  /** Requeues workflows that are owned here but not run, such as those of a claim whose answer was lost. */
  async requeueOrphans(): Promise<void> {
    const { clock, database, incarnationID, newestOwnerAt } = this.#runtime;
    if (newestOwnerAt === undefined || newestOwnerAt === this.#lookedForUpTo) return;
    const isLast = clock.monotonic() - newestOwnerAt > ORPHAN_AGE_MAX_MS;
    const owned = await findOwnedBy(database, incarnationID, ORPHAN_AGE_MS);
    await this.requeue(owned.filter(({ owner }) => !isDivergedToken(owner)));
    // Only now: after an outage the first look that succeeds may be the first of all.
    if (isLast) this.#lookedForUpTo = newestOwnerAt;
  }

  /** Requeues those of the workflows that have no run here, and will have none. */
  async requeue(owned: readonly Owned[]): Promise<void> {
    const { bus, database } = this.#runtime;
    const runs = this.#runs;
    const orphans = owned.filter((one) => runs.of([one.workflowID])[0]?.owner !== one.owner && !runs.isBeginning(one));
    if (orphans.length > 0) bus.publishAll(topics.work, await handBack(database, orphans));
  }

  #addInterest(workflowID: string): void {
    this.#interests.add(workflowID);
    if (!this.#ended.delete(workflowID)) return;
    // Another process has looked before the end, and its interest has arrived after it.
    this.#runtime.bus.publishElsewhere(topics.outcomes, workflowID);
    // That uses up the interest, and the workflow may go on: it was resumed or parked.
    this.#interests.add(workflowID);
  }

  #isAwaited(workflowID: string): boolean {
    if (this.#interests.delete(workflowID)) return true;
    this.#ended.add(workflowID);
    return false;
  }
}
