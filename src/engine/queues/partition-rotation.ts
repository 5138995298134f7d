// The partitions of a queue that may have work, served in rotation, so that a busy one does not starve the others.
//
//   ready ──claimed, more waits──► ready, at the end
//   ready ──its own limit is reached──► blocked ──one of its runs has ended, or its rate limit allows──► ready
//   ready ──nothing waits, or nothing that this engine can run──► forgotten
import type { Clock, Timer } from '../../base/clock.js';
import type { ClaimRemainder } from '../../store/queues/claim-limits.js';

/** Partitions that are looked up at a time. */
export const SCAN_MAX = 1000;

export class PartitionRotation {
  readonly #ready = new Set<string>();
  readonly #blocked = new Map<string, Timer | undefined>();
  /** The partitions of the claim that is under way, and whether one of their runs has ended since it began. */
  readonly #taken = new Map<string, boolean>();
  /** Partitions whose last claim got nothing although they seemed to have slots. */
  readonly #gotNothing = new Set<string>();
  /** Where the next look for waiting partitions begins; undefined when none is wanted. */
  #scanAfter: string | undefined;

  constructor(
    readonly clock: Clock,
    /** A partition has become ready by itself. */
    readonly onReady: () => void,
  ) {}

  get readyCount(): number {
    return this.#ready.size;
  }

  get hasBlocked(): boolean {
    return this.#blocked.size > 0;
  }

  get isEmpty(): boolean {
    return this.#ready.size === 0 && this.#scanAfter === undefined;
  }

  /** The key to look for waiting partitions after, if it is time to look. */
  get scanAfter(): string | undefined {
    return this.#ready.size < SCAN_MAX ? this.#scanAfter : undefined;
  }

  /** Any partition may have work, also the blocked ones: what blocks them may have gone unnoticed. */
  wantScan(): void {
    this.#scanAfter = '';
    for (const key of [...this.#blocked.keys()]) this.#unblock(key);
  }

  /** Takes in what a look has found; a full one is to be continued. */
  addScanned(keys: readonly string[]): void {
    this.#scanAfter = keys.length >= SCAN_MAX ? keys.at(-1) : undefined;
    for (const key of shuffled(keys)) this.add(key);
  }

  /** There is work in the partition, or a peer has freed a slot in it. Held back by a rate limit it stays blocked. */
  add(key: string): void {
    if (this.#blocked.get(key) === undefined) this.#unblock(key);
  }

  /** A run of the partition has ended. */
  freed(key: string): void {
    if (this.#blocked.has(key)) this.#unblock(key);
    else if (this.#taken.has(key)) this.#taken.set(key, true);
  }

  #unblock(key: string): void {
    this.#blocked.get(key)?.cancel();
    this.#blocked.delete(key);
    this.#ready.add(key);
  }

  /** The next partitions. They leave the rotation, and come back by `settle`. */
  take(count: number): string[] {
    const keys = [...this.#ready].slice(0, count);
    for (const key of keys) {
      this.#ready.delete(key);
      this.#taken.set(key, false);
    }
    return keys;
  }

  /** Puts back what could not be tried, in front. */
  putBack(keys: readonly string[]): void {
    const rest = [...this.#ready];
    this.#ready.clear();
    for (const key of keys) this.#taken.delete(key);
    for (const key of [...keys, ...rest]) this.#ready.add(key);
  }

  /** A partition has reached a limit of this process. */
  block(key: string): void {
    this.#taken.delete(key);
    if (!this.#ready.has(key)) this.#blocked.set(key, undefined);
  }

  /** Where a partition goes after a claim. */
  settle(
    key: string,
    { taken, allowed }: { readonly taken: number; readonly allowed: number },
    left: ClaimRemainder,
  ): void {
    const { isWaiting, hasRoom, hasPartitionRoom, partitionWaitMs } = left;
    const wasFreed = this.#taken.get(key) === true;
    const gotNothingBefore = this.#gotNothing.delete(key);
    this.#taken.delete(key);
    if (!isWaiting || this.#ready.has(key)) return;
    // The claim may have counted the run that has ended since.
    if (wasFreed) this.#ready.add(key);
    else if (hasPartitionRoom) {
      // What waits is not for this engine, or a peer freed a slot after the rows were picked.
      const isLeft = taken < allowed && hasRoom;
      if (isLeft && taken === 0 && gotNothingBefore) return;
      if (isLeft && taken === 0) this.#gotNothing.add(key);
      this.#ready.add(key);
    } else if (partitionWaitMs === null) this.block(key);
    else {
      const timer = this.clock.after(partitionWaitMs, () => {
        this.freed(key);
        this.onReady();
      });
      this.#blocked.set(key, timer);
    }
  }

  stop(): void {
    for (const timer of this.#blocked.values()) timer?.cancel();
    this.#blocked.clear();
    this.#taken.clear();
    this.#gotNothing.clear();
    this.#ready.clear();
    this.#scanAfter = undefined;
  }
}

/** Processes that scan at the same time must not all begin with the same partitions. */
function shuffled(keys: readonly string[]): string[] {
  return keys
    .map((key) => ({ key, order: Math.random() }))
    .sort((a, b) => a.order - b.order)
    .map(({ key }) => key);
}
