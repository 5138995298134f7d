// Keeps the runs of this process in step with who owns their workflows: stops those that have lost theirs, gives back
// what is owned here but not run, and lets interested processes know when a workflow has ended.
import type { WorkflowRecord } from '../../model/records.js';
import { topics } from '../../store/notify/topics.js';
import { findOwnedBy, handBack, type Owned } from '../../store/runs/lifecycle.js';
import { findLost, findWorkflows } from '../../store/runs/workflows.js';
import type { Runtime } from '../runtime.js';
import type { Run } from './run.js';
import type { Runs } from './runs.js';

/** On SQLite a busy neighbour wakes us many times a second. */
const VERIFY_INTERVAL_MS = 250;
/** Long after a claim or start has begun its run. */
const ORPHAN_AGE_MS = 20_000;
/** How long a shutdown waits for an unreachable database. */
const LEAVE_MAX_MS = 5_000;
/** Interests of other processes to remember; beyond it the oldest are forgotten, and their waiters poll. */
const INTERESTS_MAX = 10_000;

export class Ownership {
  readonly #runtime: Runtime;
  readonly #runs: Runs;
  /** Workflows that a process waits for. */
  readonly #interests = new Set<string>();
  #unsubscribes: readonly (() => void)[] = [];
  #isVerifying = false;
  /** Asked for again while the workflows were being looked up: that look may have come too early. */
  #isVerifyWanted = false;

  constructor(runtime: Runtime, runs: Runs) {
    this.#runtime = runtime;
    this.#runs = runs;
    const { bus } = runtime;
    bus.filterOutgoing(topics.outcomes, (workflowID) => this.#interests.delete(workflowID));
    // The run of a workflow is in one process: if it is this one, the others need not look.
    bus.filterOutgoing(topics.changes, (workflowID) => !runs.has(workflowID));
    runs.observe({ onEnded: ({ workflowID }) => bus.publish(topics.outcomes, workflowID) });
  }

  start(): void {
    const { bus } = this.#runtime;
    this.#unsubscribes = [
      bus.subscribe(topics.interest, (workflowIDs) =>
        workflowIDs.forEach((workflowID) => this.#addInterest(workflowID)),
      ),
      bus.subscribe(topics.changes, (workflowIDs, origin) => {
        const runs = this.#runs.of(workflowIDs);
        if (runs.length === 0) return;
        return origin === 'here' ? this.#stopLost(runs) : this.verify();
      }),
      bus.onAnything(() => void this.verify(), VERIFY_INTERVAL_MS),
    ];
  }

  /** Stops what still runs and gives it back. */
  async stop(): Promise<void> {
    const { clock, database, logger, store, bus, incarnationID } = this.#runtime;
    this.#runs.stopAll();
    const timer = clock.after(LEAVE_MAX_MS, () => void store.writer.abandon());
    try {
      await store.writer.idle();
      // By what the database says: a child that was being created may have no run here.
      const owned = await findOwnedBy(database, incarnationID, 0);
      if (owned.length > 0) bus.publishAll(topics.work, await handBack(database, owned));
    } catch (error) {
      logger.warn(`Unfinished workflows could not be given back: ${String(error)}`);
    } finally {
      timer.cancel();
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
      this.#runtime.logger.debug(`The workflows running here could not be verified: ${(error as Error).message}`);
    } finally {
      this.#isVerifying = false;
    }
  }

  /** Stops those of the runs that have lost their workflow: one that was resumed may have a new run already. */
  async #stopLost(runs: readonly Run[], signal?: AbortSignal): Promise<void> {
    const stored = runs.filter((run) => run.isStored);
    if (stored.length === 0) return;
    const workflows = await this.#find(stored, signal);
    for (const run of stored) {
      const reason = run.lossIn(workflows.get(run.workflowID));
      if (reason) this.#runs.lose(run, reason);
    }
  }

  async #find(runs: readonly Run[], signal?: AbortSignal): Promise<ReadonlyMap<string, WorkflowRecord>> {
    const { database } = this.#runtime;
    const workflowIDs = runs.map(({ workflowID }) => workflowID);
    const found = await this.#runtime.retrying(() => findWorkflows(database, workflowIDs), signal);
    return new Map(found.map((workflow) => [workflow.workflowID, workflow]));
  }

  /** Gives back what is owned here but not run: a claim whose answer was lost leaves such workflows. */
  async giveBackOrphans(): Promise<void> {
    const { database, incarnationID } = this.#runtime;
    await this.giveBack(await findOwnedBy(database, incarnationID, ORPHAN_AGE_MS));
  }

  /** Gives back those of the workflows that no run here has. */
  async giveBack(owned: readonly Owned[]): Promise<void> {
    const { bus, database } = this.#runtime;
    const orphans = owned.filter(({ workflowID, owner }) => this.#runs.of([workflowID])[0]?.owner !== owner);
    if (orphans.length > 0) bus.publishAll(topics.work, await handBack(database, orphans));
  }

  #addInterest(workflowID: string): void {
    this.#interests.add(workflowID);
    if (this.#interests.size <= INTERESTS_MAX) return;
    const [oldest] = this.#interests;
    if (oldest !== undefined) this.#interests.delete(oldest);
  }
}
