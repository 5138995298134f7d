// The partitions of a queue that may have work, served round-robin, so that a busy one does not starve the others.
//
//   ready ──claimed, more is waiting──► ready, at the end
//   ready ──the queue was full──► ready, in front
//   ready ──got nothing, and could have──► ready, at the end, once
//   ready ──its own limit is reached──► blocked ──one of its runs has ended, or its rate limit allows──► ready
//                                               ──the same, and work of other programs waits──► ready, a random time later
//   ready ──nothing waits, or nothing that this engine can run──► forgotten
import type { Clock, Timer } from '../../kernel/base/clock.js';
import type { ClaimRemainder } from './claim-limits.sql.js';

/** Partitions per scan. */
export const SCAN_MAX = 1000;
/** How long a slot may be left to other programs, in polls, which may be late: most of them come in time. */
const POLLS = 2;
const LEAVE_MAX_MIN_MS = 120;
/** Partitions to remember. More are found by a scan. */
const READY_MAX = 2 * SCAN_MAX;

interface Blocked {
  /** Until when the partition stays blocked, whatever happens. */
  readonly timer?: Timer;
  /** Whether work of other programs waits in the partition. They poll, so they get a slot only if it is left to them. */
  readonly isContended?: boolean;
}

export class PartitionRotation {
  readonly #ready = new Set<string>();
  readonly #blocked = new Map<string, Blocked>();
  /** The partitions of the claim in flight, and whether one of their runs has ended since it started. */
  readonly #claiming = new Map<string, boolean>();
  /** Partitions whose last claim got nothing although they had slots. */
  readonly #gotNothing = new Set<string>();
  /** The key after which the next scan for waiting partitions starts; undefined if none is requested. */
  #scanAfter: string | undefined;

  constructor(
    readonly clock: Clock,
    /** A partition is no longer blocked. */
    readonly onReady: () => void,
    /** How often other programs poll. */
    readonly pollMs: () => number,
  ) {}

  get readyCount(): number {
    return this.#ready.size;
  }

  get readyKeys(): readonly string[] {
    return [...this.#ready];
  }

  /** All that are known to have work waiting. */
  get count(): number {
    return this.#ready.size + this.#blocked.size + this.#claiming.size;
  }

  get hasBlocked(): boolean {
    return this.#blocked.size > 0;
  }

  get isEmpty(): boolean {
    return this.#ready.size === 0 && this.#scanAfter === undefined;
  }

  /** The key to scan after, if a scan is requested and needed now. */
  get scanAfter(): string | undefined {
    return this.#ready.size < SCAN_MAX ? this.#scanAfter : undefined;
  }

  /** Any partition may have work. Unblocks all: the notification that their limit allows more may have been lost. */
  requestScan(): void {
    this.#scanAfter = '';
    for (const key of [...this.#blocked.keys()]) this.#unblock(key);
  }

  /** Adds what a scan has found. If it was full, the next scan continues it. */
  addScanned(keys: readonly string[]): void {
    this.#scanAfter = keys.length >= SCAN_MAX ? keys.at(-1) : undefined;
    for (const key of shuffled(keys)) this.add(key);
  }

  /** There is work in the partition, or a peer has freed a slot in it. A rate limit keeps it blocked. */
  add(key: string): void {
    // Notifications may name any number of partitions. A scan finds those that exist.
    if (this.#ready.size >= READY_MAX && !this.#ready.has(key)) this.#scanAfter ??= '';
    else if (this.#blocked.get(key)?.timer === undefined) this.#unblock(key);
  }

  /** A run of the partition has ended. True if its slot is left to other programs for a moment. */
  slotFreed(key: string): boolean {
    const blocked = this.#blocked.get(key);
    if (blocked?.isContended) this.#blockFor(key, Math.random() * Math.max(POLLS * this.pollMs(), LEAVE_MAX_MIN_MS));
    else if (blocked) this.#unblock(key);
    else if (this.#claiming.has(key)) this.#claiming.set(key, true);
    return blocked?.isContended === true;
  }

  #blockFor(key: string, delayMs: number): void {
    this.#blocked.get(key)?.timer?.cancel();
    const timer = this.clock.after(delayMs, () => {
      this.#unblock(key);
      this.onReady();
    });
    this.#blocked.set(key, { timer });
  }

  #unblock(key: string): void {
    this.#blocked.get(key)?.timer?.cancel();
    this.#blocked.delete(key);
    this.#ready.add(key);
  }

  /**
   * The next partitions to claim from. They leave the rotation until `settle`, `block` or `putBack`. Engines that share the
   * queue pick at random among the next ones: they have heard of them in the same order, and would all claim from the same.
   */
  take(count: number, engines = 1): string[] {
    const next = [...this.#ready].slice(0, count * engines);
    const keys = engines === 1 ? next : shuffled(next).slice(0, count);
    for (const key of keys) {
      this.#ready.delete(key);
      this.#claiming.set(key, false);
    }
    return keys;
  }

  /** Puts partitions that were not served back, in front. */
  putBack(keys: readonly string[]): void {
    const rest = [...this.#ready];
    this.#ready.clear();
    for (const key of keys) this.#claiming.delete(key);
    for (const key of [...keys, ...rest]) this.#ready.add(key);
  }

  /** The partition is at a limit of this process. */
  block(key: string, isContended = false): void {
    this.#claiming.delete(key);
    if (!this.#ready.has(key)) this.#blocked.set(key, { isContended });
  }

  /** Where a partition goes after its turn. */
  settle(key: string, taken: number, { isWaiting, hasPartitionRoom, partitionWaitMs, others }: ClaimRemainder): void {
    const wasFreed = this.#claiming.get(key) === true;
    const gotNothingBefore = this.#gotNothing.delete(key);
    const wasAnnounced = this.#ready.delete(key);
    this.#claiming.delete(key);
    if (!isWaiting && !wasAnnounced) return;
    // The claim may have counted the run that has ended meanwhile.
    if (wasAnnounced || wasFreed) this.#ready.add(key);
    else if (hasPartitionRoom) {
      // Either this engine can't run what is left, or a peer freed a slot after the rows were picked. Retry once.
      if (taken === 0 && gotNothingBefore) return;
      if (taken === 0) this.#gotNothing.add(key);
      this.#ready.add(key);
    } else if (partitionWaitMs === null) this.block(key, others?.spare === null);
    else this.#blockFor(key, partitionWaitMs);
  }

  stop(): void {
    for (const { timer } of this.#blocked.values()) timer?.cancel();
    this.#blocked.clear();
    this.#claiming.clear();
    this.#gotNothing.clear();
    this.#ready.clear();
    this.#scanAfter = undefined;
  }
}

/** Processes that scan at the same time should not all start with the same partitions. */
function shuffled(keys: readonly string[]): string[] {
  return keys
    .map((key) => ({ key, order: Math.random() }))
    .sort((a, b) => a.order - b.order)
    .map(({ key }) => key);
}
