// One queue as the dispatcher serves it: whether there may be work in it, and when to try again.
import type { Clock, Timer } from '../../base/clock.js';
import type { ClaimRemainder } from '../../store/queues/claim-limits.js';
import { PartitionRotation } from './partition-rotation.js';
import type { Queue } from './known-queues.js';

/** How long peers get to claim their share of a queue. */
const YIELD_MS = 75;
/** Peers did not want what was left to them: how long until they are offered a share again, doubling each time. */
const UNWANTED_MIN_MS = 125;
const UNWANTED_MAX_MS = 2000;
/** How long until work that could not be claimed is tried again, doubling each time. */
const LATER_MIN_MS = 250;
const LATER_MAX_MS = 8000;

export class QueueState {
  queue: Queue;
  readonly partitions: PartitionRotation;
  isClaiming = false;
  /** The queue is not served any more; a claim may still be under way. */
  isStopped = false;
  /** More was waiting when this engine last looked. */
  hasBacklog = true;
  /** A slot has become free here that a peer may be able to use. */
  hasFreed = false;
  readonly #clock: Clock;
  readonly #announce: (queue: QueueState) => void;
  #timer: { readonly at: number; readonly timer: Timer } | undefined;
  /** While the rest is left to peers: until when. */
  #yieldsUntil: number | undefined;
  #gotNothing = false;
  #sharesFrom = 0;
  #unwantedMs = UNWANTED_MIN_MS;
  #laterMs = LATER_MIN_MS;

  constructor(queue: Queue, clock: Clock, announce: (queue: QueueState) => void) {
    this.queue = queue;
    this.#clock = clock;
    this.#announce = announce;
    this.partitions = new PartitionRotation(clock, () => announce(this));
  }

  get isPartitioned(): boolean {
    return this.queue.limits.partition !== null;
  }

  /** Whether the next claim leaves peers their share. */
  get isSharing(): boolean {
    const now = this.#clock.now();
    return this.#yieldsUntil === undefined ? now >= this.#sharesFrom : now < this.#yieldsUntil;
  }

  /** Tries again after this time, unless an earlier try is scheduled. */
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

  /** Leaves the rest to peers for a moment; after that the first to claim gets it. */
  yield(): void {
    const now = this.#clock.now();
    this.#yieldsUntil ??= now + YIELD_MS;
    this.tryAfter(this.#yieldsUntil - now);
  }

  /** A claim left work although there were slots. True unless it was the second in a row to get nothing. */
  shouldRetryAtOnce(taken: number): boolean {
    const isSure = taken === 0 && this.#gotNothing;
    this.#gotNothing = taken === 0 && !isSure;
    return !isSure;
  }

  /** Work is left that could not be claimed, perhaps because another session has it locked: retries with backoff. */
  tryLater(): void {
    if (this.#laterMs > LATER_MAX_MS) return;
    this.tryAfter(this.#laterMs);
    this.#laterMs *= 2;
  }

  /** Updates the state after a claim. */
  settle(taken: number, wasSharing: boolean, left: Pick<ClaimRemainder, 'isWaiting' | 'hasRoom'>): void {
    this.hasBacklog = left.isWaiting;
    if (taken > 0 || !left.isWaiting) this.#laterMs = LATER_MIN_MS;
    if (!left.isWaiting) this.hasFreed = false;
    // Nothing is left that peers could claim.
    const isOver = !left.isWaiting || !left.hasRoom;
    if (isOver) this.#gotNothing = false;
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
