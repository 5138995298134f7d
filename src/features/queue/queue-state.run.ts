// The dispatcher's state of one queue: whether it may have work, and when to claim again.
import type { Clock, Timer } from '../../kernel/base/clock.js';
import type { ClaimRemainder } from './claim-limits.sql.js';
import { PartitionRotation } from './partition-rotation.run.js';
import type { Queue } from './known-queues.run.js';
import { Turns } from './turns.run.js';

/** How long peers get to claim their share. */
const YIELD_MS = 75;
/** Backoff after peers left their share unclaimed: how long until they are offered one again. Doubles each time. */
const SHARE_BACKOFF_MIN_MS = 125;
const SHARE_BACKOFF_MAX_MS = 2000;
/** Backoff after a claim that left work although there were slots. Doubles each time. */
const RETRY_BACKOFF_MIN_MS = 250;
const RETRY_BACKOFF_MAX_MS = 8000;

/** Names to remember. Without them, peers look for themselves. */
const NAMES_MAX = 50;
const NO_NAMES: readonly string[] = [];

export class QueueState {
  queue: Queue;
  readonly partitions: PartitionRotation;
  readonly turns: Turns;
  isClaiming = false;
  /** The claim before the one in flight, if that was made before its workflows had begun. */
  beginning: Promise<void> | undefined;
  /** The queue is no longer served. A claim may still be in flight. */
  isStopped = false;
  /** The last claim left workflows waiting. */
  hasBacklog = true;
  /** A slot has become free here that a peer may be able to use. */
  hasFreed = false;
  /** The names under which work was announced since the last claim, by partition, or '' for the whole queue. */
  readonly #names = new Map<string, Set<string>>();
  readonly #clock: Clock;
  readonly #announce: (queue: QueueState) => void;
  #pause: Timer | undefined;
  #timer: { readonly at: number; readonly timer: Timer } | undefined;
  /** Set while the rest is left to peers: until when. */
  #yieldsUntil: number | undefined;
  #wasLastClaimEmpty = false;
  #sharesAgainAt = 0;
  #shareBackoffMs = SHARE_BACKOFF_MIN_MS;
  #retryBackoffMs = RETRY_BACKOFF_MIN_MS;

  constructor(queue: Queue, clock: Clock, announce: (queue: QueueState) => void) {
    this.queue = queue;
    this.#clock = clock;
    this.#announce = announce;
    this.partitions = new PartitionRotation(
      clock,
      () => announce(this),
      () => this.queue.pollMs,
    );
    this.turns = new Turns(clock);
  }

  /** Whether the last claim has just failed. */
  get isPaused(): boolean {
    return this.#pause !== undefined;
  }

  get isPartitioned(): boolean {
    return this.queue.limits.partition !== null;
  }

  /** Whether the next claim leaves a share to peers. */
  get isSharing(): boolean {
    const now = this.#clock.monotonic();
    return this.#yieldsUntil === undefined ? now >= this.#sharesAgainAt : now < this.#yieldsUntil;
  }

  /** Remembers under which name the work was announced that the next claim may take. */
  noteName(partitionKey: string | null | undefined, name: string | undefined): void {
    if (name === undefined) return;
    const names = this.#names.get(partitionKey ?? '');
    if (names && names.size < NAMES_MAX) names.add(name);
    else if (!names && this.#names.size < NAMES_MAX) this.#names.set(partitionKey ?? '', new Set([name]));
  }

  /** The names of what a claim that begins now may take. */
  takeNames(partitionKey = ''): readonly string[] {
    const names = this.#names.get(partitionKey);
    this.#names.delete(partitionKey);
    return names ? [...names] : NO_NAMES;
  }

  /** Claims nothing until this delay is over, whatever is announced meanwhile. */
  pauseFor(delayMs: number): void {
    this.#pause?.cancel();
    this.#pause = this.#clock.after(delayMs, () => {
      this.#pause = undefined;
      this.#announce(this);
    });
  }

  /** Claims again after this delay, unless an earlier claim is scheduled. */
  retryAfter(delayMs: number): void {
    const at = this.#clock.monotonic() + delayMs;
    if (this.#timer && this.#timer.at <= at) return;
    this.#timer?.timer.cancel();
    const timer = this.#clock.after(delayMs, () => {
      this.#timer = undefined;
      this.#announce(this);
    });
    this.#timer = { at, timer };
  }

  /** Leaves slots to other programs for so long. True if that is over. */
  leave(ms: number): boolean {
    if (ms > 0) this.retryAfter(ms);
    return ms === 0;
  }

  /** Leaves the rest to peers for a moment. After that, the first to claim gets it. */
  yield(): void {
    const now = this.#clock.monotonic();
    this.#yieldsUntil ??= now + YIELD_MS;
    this.retryAfter(this.#yieldsUntil - now);
  }

  /** A claim left work although there were slots. True unless it was the second in a row to get nothing. */
  shouldRetryAtOnce(taken: number): boolean {
    const isSecond = taken === 0 && this.#wasLastClaimEmpty;
    this.#wasLastClaimEmpty = taken === 0 && !isSecond;
    return !isSecond;
  }

  /** Work is left that could not be claimed, perhaps because another session has it locked. */
  retryWithBackoff(): void {
    if (this.#retryBackoffMs > RETRY_BACKOFF_MAX_MS) return;
    this.retryAfter(this.#retryBackoffMs);
    this.#retryBackoffMs *= 2;
  }

  /** Updates the state after a claim. */
  settle(taken: number, wasSharing: boolean, left: Pick<ClaimRemainder, 'isWaiting' | 'hasRoom'>): void {
    this.hasBacklog = left.isWaiting;
    if (taken > 0 || !left.isWaiting) this.#retryBackoffMs = RETRY_BACKOFF_MIN_MS;
    if (!left.isWaiting) this.hasFreed = false;
    // Nothing is left that peers could claim.
    const isOver = !left.isWaiting || !left.hasRoom;
    if (isOver) this.#wasLastClaimEmpty = false;
    if (this.#yieldsUntil === undefined || (wasSharing && !isOver)) return;
    this.#yieldsUntil = undefined;
    const wasShareUnclaimed = !wasSharing && taken > 0;
    if (wasShareUnclaimed) this.#sharesAgainAt = this.#clock.monotonic() + this.#shareBackoffMs;
    this.#shareBackoffMs = wasShareUnclaimed
      ? Math.min(2 * this.#shareBackoffMs, SHARE_BACKOFF_MAX_MS)
      : SHARE_BACKOFF_MIN_MS;
  }

  stop(): void {
    this.isStopped = true;
    this.#pause?.cancel();
    this.#pause = undefined;
    this.#timer?.timer.cancel();
    this.#timer = undefined;
    this.partitions.stop();
  }
}
