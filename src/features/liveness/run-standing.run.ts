// How sure a run is that it owns its workflow. After a pause, peers may have recovered the workflow, or another program may
// have cancelled it or taken it over. Nothing begins before the database says that they have not.
import type { Owned } from '../../run/rows/lifecycle.js';
import type { Runtime } from '../../run/runtime.js';
import type { Standing } from './lease.run.js';
import { findLossReason } from '../../run/loss.js';

/**
 * How old the word of the database may be that a run owns its workflow. Longer where a loss is pushed: a run hears of it
 * before, unless its process was stopped.
 */
const CERTAIN_MS = 50;
const PUSHED_CERTAIN_MS = 250;

/** The run, as far as it is asked. */
interface StandingRun extends Owned {
  readonly runtime: Runtime;
  readonly signal: AbortSignal;
  readonly stopReason: Error | undefined;
  stop(reason: Error): void;
}

export class RunStanding {
  readonly #run: StandingRun;
  /** How often the workflow may have been lost without notice, and for how many of them the database has denied it. */
  #doubts = 0;
  #settledDoubts = 0;
  /** The epoch of the lease in which the run has owned its workflow for sure. */
  #epoch: number;
  /** When the database has last said that the run owns its workflow, on the monotonic clock. */
  #confirmedAt: number;

  /** `standing`: before the workflow was created or claimed. */
  constructor(run: StandingRun, standing: Standing) {
    this.#run = run;
    this.#epoch = standing.epoch;
    this.#confirmedAt = standing.askedAt;
  }

  /** The workflow may be lost without notice. */
  doubt(): void {
    this.#doubts += 1;
  }

  /** The database has just said that the run owns its workflow. */
  renew(): void {
    this.#confirmedAt = this.#run.runtime.clock.monotonic();
  }

  /** Whether no peer can have recovered the workflow, and no other program has had time to take it. */
  get isCertain(): boolean {
    const { clock, lease, store } = this.#run.runtime;
    if (this.#doubts !== this.#settledDoubts || !lease.isCertain || lease.epoch !== this.#epoch) return false;
    const maxMs = store.listener.session === 0 ? CERTAIN_MS : PUSHED_CERTAIN_MS;
    return clock.monotonic() - this.#confirmedAt <= maxMs;
  }

  /** Asks the database, and stops the run if it has lost its workflow. */
  async confirm(): Promise<void> {
    const run = this.#run;
    const { lease, owners } = run.runtime;
    const doubts = this.#doubts;
    try {
      let standing: Standing;
      do {
        await run.runtime.retrying(() => lease.ensure(), run.signal);
        standing = lease.standing;
        // After the renewal: no peer finds the lease over until its new end.
        const isOwned = await run.runtime.retrying(() => owners.owns(run), run.signal);
        if (!isOwned) run.stop(await findLossReason(run));
      } while (!run.stopReason && lease.isOver);
      this.#settledDoubts = Math.max(this.#settledDoubts, doubts);
      this.#epoch = standing.epoch;
      this.#confirmedAt = standing.askedAt;
    } catch (error) {
      // The retries end with the run.
      throw run.stopReason ?? error;
    }
  }
}
