// Deadlines. A run here has a timer that is exact to the millisecond. Workflows that nobody runs (enqueued, delayed, or
// left by a process that is gone) are swept: the next deadline is slept to, and looked up again now and then.
import type { Clock, Timer } from '../../base/clock.js';
import { DueLoop } from '../../base/due-loop.js';
import type { DLogger } from '../../base/log.js';
import type { Run } from './run.js';

export interface DeadlinesOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  /** Cancels one workflow whose time is up. */
  cancel(workflowID: string): Promise<unknown>;
  /** Cancels what is overdue in the database and tells how long until the next one is. */
  sweep(signal: AbortSignal): Promise<number | undefined>;
}

const SWEEP_MAX_MS = 30_000;
/** A sweep leaves those who run a workflow the time to end it themselves. */
const SWEEP_GRACE_MS = 50;

export class Deadlines {
  readonly #options: DeadlinesOptions;
  readonly #timers = new Map<Run, Timer>();
  readonly #loop: DueLoop;

  constructor(options: DeadlinesOptions) {
    this.#options = options;
    const { clock, logger } = options;
    this.#loop = new DueLoop({
      clock,
      logger,
      subject: 'Deadlines',
      sweep: (signal) => options.sweep(signal),
      maxMs: SWEEP_MAX_MS,
      graceMs: SWEEP_GRACE_MS,
    });
  }

  start(): void {
    this.#loop.start();
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    await this.#loop.stop();
  }

  /** Cancels the workflow when its time is up, unless the run has ended by then. */
  watch(run: Run, remainingMs: number | null): void {
    if (remainingMs === null) return;
    const timer = this.#options.clock.after(Math.max(remainingMs, 0), () => {
      this.#timers.delete(run);
      this.#options.cancel(run.workflowID).catch((error: unknown) => {
        this.#options.logger.warn(
          `Workflow "${run.workflowID}" is overdue and could not be cancelled yet: ${String(error)}`,
        );
      });
    });
    this.#timers.set(run, timer);
  }

  forget(run: Run): void {
    this.#timers.get(run)?.cancel();
    this.#timers.delete(run);
  }

  /** A workflow with a deadline was enqueued: it may be the next one. */
  lookAgain(): void {
    this.#loop.lookAgain();
  }
}
