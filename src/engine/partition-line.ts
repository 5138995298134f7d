// The partitions of a queue as they wait to be served: each in its turn, so that a busy one does not keep the others
// from theirs.
//
//   ready ──claimed, more waits──► ready, at the end of the line
//   ready ──its own limit is reached──► blocked ──one of its runs has ended, or its time has come──► ready
//   ready ──nothing waits──► forgotten
import type { Clock, Timer } from '../base/clock.js';
import type { Left } from '../store/claim-limits.js';

/** Partitions that are looked up at a time. */
export const SCAN_MAX = 1000;

export class PartitionLine {
  readonly #ready = new Set<string>();
  readonly #blocked = new Map<string, Timer | undefined>();
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

  /** Work was announced in the partition. A blocked one stays blocked. */
  add(key: string): void {
    if (!this.#blocked.has(key)) this.#ready.add(key);
  }

  /** A run of the partition has ended. */
  freed(key: string): void {
    if (this.#blocked.has(key)) this.#unblock(key);
  }

  #unblock(key: string): void {
    this.#blocked.get(key)?.cancel();
    this.#blocked.delete(key);
    this.#ready.add(key);
  }

  /** The next partitions in line. They leave it, and come back by `settle`. */
  take(count: number): string[] {
    const keys = [...this.#ready].slice(0, count);
    for (const key of keys) this.#ready.delete(key);
    return keys;
  }

  /** Puts back what could not be tried, as it was. */
  putBack(keys: readonly string[]): void {
    const rest = [...this.#ready];
    this.#ready.clear();
    for (const key of [...keys, ...rest]) this.#ready.add(key);
  }

  /** A partition has reached a limit of this process. */
  block(key: string): void {
    if (!this.#ready.has(key)) this.#blocked.set(key, undefined);
  }

  /** Where a partition goes after a claim. `isCut` tells that the claim has taken all that it was allowed to. */
  settle(key: string, isCut: boolean, left: Left): void {
    const { isWaiting, hasRoom, hasPartitionRoom, partitionWaitMs } = left;
    if (!isWaiting || this.#ready.has(key)) return;
    if (hasPartitionRoom) {
      // Otherwise what waits is not for this engine.
      if (isCut || !hasRoom) this.#ready.add(key);
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
    this.#ready.clear();
    this.#scanAfter = undefined;
  }
}

/** Processes that look at the same time shall not all begin with the same partitions. */
function shuffled(keys: readonly string[]): string[] {
  return keys
    .map((key) => ({ key, order: Math.random() }))
    .sort((a, b) => a.order - b.order)
    .map(({ key }) => key);
}
