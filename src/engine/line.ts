// One queue as the dispatcher serves it: whether there may be work in it, and when to try again.
import type { Clock, Timer } from '../base/clock.js';
import type { Left } from '../store/claim-limits.js';
import { PartitionLine } from './partition-line.js';
import type { Queue } from './queues.js';

/** How long others get to take what is theirs of a queue that is shared evenly. */
const YIELD_MS = 25;
/** Nobody wanted what was left to others: how long until they are asked again. */
const UNWANTED_MS = 1000;

export class Line {
  queue: Queue;
  readonly partitions: PartitionLine;
  isClaiming = false;
  /** More was waiting when this engine last looked. */
  hasBacklog = true;
  /** A slot has become free here that others may be able to use. */
  hasFreed = false;
  readonly #clock: Clock;
  readonly #announce: (line: Line) => void;
  #timer: { readonly at: number; readonly timer: Timer } | undefined;
  #hasYielded = false;
  #sharesFrom = 0;

  constructor(queue: Queue, clock: Clock, announce: (line: Line) => void) {
    this.queue = queue;
    this.#clock = clock;
    this.#announce = announce;
    this.partitions = new PartitionLine(clock, () => announce(this));
  }

  get isPartitioned(): boolean {
    return this.queue.limits.partition !== null;
  }

  /** Whether this engine is to leave others their share at the next claim. */
  get isSharing(): boolean {
    return !this.#hasYielded && this.#clock.now() >= this.#sharesFrom;
  }

  /** Tries again after so long, unless it is to try earlier anyway. */
  tryAfter(delayMs: number): void {
    const at = this.#clock.now() + delayMs;
    if (this.#timer && this.#timer.at <= at) return;
    this.#timer?.timer.cancel();
    const timer = this.#clock.after(delayMs, () => {
      this.#timer = undefined;
      this.#announce(this);
    });
    this.#timer = { at, timer };
  }

  /** Leaves the rest to others for a moment; then it is for whoever is first. */
  yield(): void {
    this.#hasYielded = true;
    this.tryAfter(YIELD_MS);
  }

  /** Draws conclusions from a claim. */
  settle(taken: number, wasSharing: boolean, left: Pick<Left, 'isWaiting'>): void {
    this.hasBacklog = left.isWaiting;
    if (wasSharing || !this.#hasYielded) return;
    this.#hasYielded = false;
    if (taken > 0) this.#sharesFrom = this.#clock.now() + UNWANTED_MS;
  }

  stop(): void {
    this.#timer?.timer.cancel();
    this.#timer = undefined;
    this.partitions.stop();
  }
}
