// One queue as the dispatcher serves it: whether there may be work in it, and when to try again.
import type { Clock, Timer } from '../../base/clock.js';
import type { ClaimRemainder } from '../../store/queues/claim-limits.js';
import { PartitionLine } from './partition-line.js';
import type { Queue } from './queues.js';

/** How long others get to take what is theirs of a queue that is shared evenly. */
const YIELD_MS = 75;
/** Nobody wanted what was left to others: how long until they are asked again. Twice as long each time. */
const UNWANTED_MIN_MS = 125;
const UNWANTED_MAX_MS = 2000;
/** How long until what could not be taken is looked at again: twice as long each time, a few times. */
const LATER_MIN_MS = 250;
const LATER_MAX_MS = 8000;

export class Line {
  queue: Queue;
  readonly partitions: PartitionLine;
  isClaiming = false;
  /** The queue is not served any more; a claim may still be under way. */
  isStopped = false;
  /** More was waiting when this engine last looked. */
  hasBacklog = true;
  /** A slot has become free here that others may be able to use. */
  hasFreed = false;
  readonly #clock: Clock;
  readonly #announce: (line: Line) => void;
  #timer: { readonly at: number; readonly timer: Timer } | undefined;
  /** While it leaves the rest to others: until when. */
  #yieldsUntil: number | undefined;
  #isDoubtful = false;
  #sharesFrom = 0;
  #unwantedMs = UNWANTED_MIN_MS;
  #laterMs = LATER_MIN_MS;

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
    const now = this.#clock.now();
    return this.#yieldsUntil === undefined ? now >= this.#sharesFrom : now < this.#yieldsUntil;
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
    const now = this.#clock.now();
    this.#yieldsUntil ??= now + YIELD_MS;
    this.tryAfter(this.#yieldsUntil - now);
  }

  /** A claim has left something although there was room. Whether to try again: not if it was the second to get nothing. */
  doubt(taken: number): boolean {
    const isSure = taken === 0 && this.#isDoubtful;
    this.#isDoubtful = taken === 0 && !isSure;
    return !isSure;
  }

  /** Something is left that could not be taken. Somebody may hold it for a moment: looks again a few times, ever later. */
  tryLater(): void {
    if (this.#laterMs > LATER_MAX_MS) return;
    this.tryAfter(this.#laterMs);
    this.#laterMs *= 2;
  }

  /** Draws conclusions from a claim. */
  settle(taken: number, wasSharing: boolean, left: Pick<ClaimRemainder, 'isWaiting' | 'hasRoom'>): void {
    this.hasBacklog = left.isWaiting;
    if (taken > 0 || !left.isWaiting) this.#laterMs = LATER_MIN_MS;
    if (!left.isWaiting) this.hasFreed = false;
    // There is nothing that could be left to others.
    const isOver = !left.isWaiting || !left.hasRoom;
    if (isOver) this.#isDoubtful = false;
    if (this.#yieldsUntil === undefined || (wasSharing && !isOver)) return;
    this.#yieldsUntil = undefined;
    const isUnwanted = !wasSharing && taken > 0;
    if (isUnwanted) this.#sharesFrom = this.#clock.now() + this.#unwantedMs;
    this.#unwantedMs = isUnwanted ? Math.min(2 * this.#unwantedMs, UNWANTED_MAX_MS) : UNWANTED_MIN_MS;
  }

  stop(): void {
    this.isStopped = true;
    this.#timer?.timer.cancel();
    this.#timer = undefined;
    this.partitions.stop();
  }
}
