// The waits of a run for something outside of it. A run that only waits may leave the process: its waits are suspended, and
// parking.ts parks its workflow in the database.
//
//   here ──suspend──► leaving ──parked──► away: the promises that its code awaits never settle
//                        └──refused──► here: the waits begin again
//   leaving, away ──its code goes on all the same──► parking.ts takes the workflow back ──► here, or stopped
import type { Clock } from '../../kernel/base/clock.js';
import { type Deferred, deferred } from '../../kernel/base/deferred.js';
import type { Wait } from '../../operator/row-watcher.js';

/** A wait of the run, and when it began by the monotonic clock. */
export interface BegunWait extends Wait {
  readonly begunAt: number;
}

/** What a suspended wait is rejected with. It never reaches the code of the workflow. */
const SUSPENDED = new Error('The run has left this process.');

export class RunWaits {
  /** Called when the run starts to wait, and when it continues. */
  onWaiting: ((isWaiting: boolean) => void) | undefined;
  /** Called when the code of the run goes on although it is away. */
  onReturn: (() => void) | undefined;
  /** Operations in flight, except passive ones. */
  operations = 0;
  /** Operations that were performed or replayed: what another run would have to replay. */
  performed = 0;
  readonly #clock: Pick<Clock, 'monotonic'>;
  #count = 0;
  /** Those that can be suspended. Created on first use: most runs do not wait. */
  #suspendable: Set<BegunWait> | undefined;
  #suspension: AbortController | undefined;
  #absence: Deferred<void> | undefined;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  /** Waits. Meanwhile the run does not count against this process's capacity. With `wait`, it can be suspended. */
  async waitFor<T>(begin: (suspended?: AbortSignal) => Promise<T>, wait?: Wait): Promise<T> {
    const counted = wait?.isLimit ? 0 : 1;
    this.#count += counted;
    const begun = wait && this.#add(wait);
    if (this.#count === counted && counted > 0) this.onWaiting?.(true);
    try {
      for (;;) {
        try {
          const result = await begin(begun && this.#signal);
          // It may have ended just when the run was about to leave.
          if (this.#absence) await this.comeBack();
          return result;
        } catch (error) {
          if (error !== SUSPENDED) throw error;
          await this.#absence?.promise;
        }
      }
    } finally {
      this.#count -= counted;
      if (begun) this.#suspendable?.delete(begun);
      if (this.#count === 0 && counted > 0) this.onWaiting?.(false);
    }
  }

  #add(wait: Wait): BegunWait {
    // Not a copy: `isBegun` changes.
    const begun = Object.assign(wait, { begunAt: this.#clock.monotonic() });
    this.#suspendable ??= new Set();
    this.#suspendable.add(begun);
    return begun;
  }

  get #signal(): AbortSignal {
    this.#suspension ??= new AbortController();
    return this.#suspension.signal;
  }

  get isWaiting(): boolean {
    return this.#count > 0;
  }

  /** What workflow code waits for, whatever else the run does. */
  get begun(): readonly Wait[] {
    return [...(this.#suspendable ?? [])].filter(({ isBegun }) => isBegun !== false);
  }

  /** The waits, if the run does nothing else; otherwise none. */
  get suspendable(): readonly BegunWait[] {
    const waits = [...(this.#suspendable ?? [])];
    const inOperations = waits.filter(({ isOperation }) => isOperation).length;
    const counted = waits.filter(({ isLimit }) => !isLimit).length;
    const isAlone = counted > 0 && counted === this.#count && inOperations === this.operations;
    return isAlone && waits.every(({ isBegun }) => isBegun !== false) ? waits : [];
  }

  /** Suspends the waits. */
  suspend(): void {
    this.#absence = deferred<void>();
    const suspension = this.#suspension;
    this.#suspension = undefined;
    suspension?.abort(SUSPENDED);
  }

  /** The run is here again: its waits begin again. */
  resume(): void {
    const absence = this.#absence;
    this.#absence = undefined;
    absence?.resolve();
  }

  /** Whether nothing of the run may be written, because it leaves or has left. */
  get isAway(): boolean {
    return this.#absence !== undefined;
  }

  /** The run's code goes on. Resolves when the run is here again, or was stopped. */
  async comeBack(): Promise<void> {
    while (this.#absence) {
      this.onReturn?.();
      await this.#absence.promise;
    }
  }
}
