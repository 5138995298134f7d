// Cancels workflows at their deadlines. Each run here has a timer, exact to the millisecond. Workflows that no process
// runs (enqueued, delayed, or left by a dead process) are swept by a loop that sleeps until the next deadline.
import { abortable } from '../kernel/base/abortable.js';
import { DueLoop } from '../kernel/base/due-loop.js';
import { cancelWorkflows } from '../features/lifecycle/lifecycle.js';
import { announceChanged } from '../operator/announcements.js';
import { cancelOverdue, msToNextDeadline } from './rows/lifecycle.js';
import type { Runtime } from './runtime.js';
import type { Ownership } from './ownership.js';
import type { Run } from './run.js';
import type { Runs } from './runs.js';

export interface DeadlinesOptions {
  readonly runtime: Runtime;
  readonly runs: Runs;
  readonly ownership: Ownership;
}

const OVERDUE_BATCH = 1000;
const SWEEP_MAX_MS = 30_000;
/** Gives processes that run an overdue workflow time to cancel it themselves. */
const SWEEP_GRACE_MS = 50;

export class Deadlines {
  readonly #runtime: Runtime;
  readonly #ownership: Ownership;
  readonly #watches = new Map<Run, AbortController>();
  readonly #loop: DueLoop;
  #wakes = 0;
  /** The number of wakes at which there was no deadline. Until the next one, none is looked for. */
  #wakesWithout: number | undefined;

  constructor({ runtime, runs, ownership }: DeadlinesOptions) {
    this.#runtime = runtime;
    this.#ownership = ownership;
    const { clock, logger } = runtime;
    this.#loop = new DueLoop({
      clock,
      logger,
      subject: 'Deadlines',
      sweep: (signal) => this.#sweep(signal),
      maxMs: SWEEP_MAX_MS,
      graceMs: SWEEP_GRACE_MS,
    });
    runs.observe({
      onEnded: (run) => {
        this.#forget(run);
        // If its workflow goes on, no timer is left for it here.
        if (run.isHalted && run.deadlineAt !== null) this.wake();
      },
    });
  }

  start(): void {
    this.#loop.start();
  }

  async stop(): Promise<void> {
    for (const watch of this.#watches.values()) watch.abort();
    this.#watches.clear();
    await this.#loop.stop();
  }

  /** Cancels the workflow at its deadline, unless the run has ended by then. */
  watch(run: Run): void {
    if (run.deadlineAt === null) return;
    const watch = new AbortController();
    this.#watches.set(run, watch);
    this.#cancelAt(run, run.deadlineAt, watch.signal).catch((error: unknown) => {
      if (watch.signal.aborted) return;
      this.#runtime.logger.warn(
        `Cannot cancel workflow "${run.workflowID}", which has passed its deadline: ${String(error)}`,
      );
    });
  }

  async #cancelAt(run: Run, deadlineAt: number, signal: AbortSignal): Promise<void> {
    await this.#runtime.databaseClock.reached(deadlineAt, signal);
    this.#watches.delete(run);
    await cancelWorkflows(this.#runtime, [run.workflowID], { isTimeout: true });
  }

  /** A workflow with a deadline was enqueued, which may be the next one. */
  wake(): void {
    this.#wakes += 1;
    this.#loop.wake();
  }

  /** The polls of the queues find out when the next deadline is due. */
  wakeFor(deadlineMs: number): void {
    this.#wakes += 1;
    this.#loop.wakeFor(deadlineMs);
  }

  #forget(run: Run): void {
    this.#watches.get(run)?.abort();
    this.#watches.delete(run);
  }

  async #sweep(signal: AbortSignal): Promise<number | undefined> {
    const { bus, database } = this.#runtime;
    await this.#ownership.verify(signal);
    await this.#ownership.requeueOrphans();
    const wakes = this.#wakes;
    if (wakes === this.#wakesWithout) return undefined;
    const nextMs = await msToNextDeadline(database);
    if (nextMs === undefined) this.#wakesWithout = wakes;
    if (nextMs === undefined || nextMs > 0) return nextMs;
    await abortable(announceChanged(bus, await cancelOverdue(database, OVERDUE_BATCH)), signal);
    return 0;
  }
}
