// Items that could not be written yet, while others could: their workflow is locked, or a condition of the database
// concerns only them. They are tried again beside the main stream, and hold back what follows in their lanes.
import { type BackoffPolicy, backoffMs } from '../../kernel/base/backoff.js';
import { type BatchBounds, countWithin } from '../../kernel/base/batcher.js';
import { type Clock, sleep } from '../../kernel/base/clock.js';
import { type Deferred, deferred } from '../../kernel/base/deferred.js';
import type { DLogger } from '../../kernel/base/log.js';
import type { Blocked, WriterEntry } from './group-commits.js';
import { laneOf } from './lanes.js';
import type { Item } from './write-group.js';

export interface ParkedItemsOptions {
  /** Writes entries in order and settles them, except those that it returns. */
  write(entries: readonly WriterEntry[]): Promise<Blocked>;
  readonly clock: Clock;
  readonly logger: DLogger;
  readonly signal: AbortSignal;
  /** What is tried together at most. */
  readonly bounds: BatchBounds<Item>;
}

const POLICY: BackoffPolicy = { firstMs: 50, maxMs: 1000, rate: 2, jitter: 0.5 };
/** Rounds without progress before it is logged: 2 seconds, and every minute. */
const SILENT_ROUNDS = 6;
const REMINDER_ROUNDS = 60;

export class ParkedItems {
  readonly #options: ParkedItemsOptions;
  /** In order of submission, as far as they share a lane. */
  #entries: WriterEntry[] = [];
  /** How many entries each lane has. */
  readonly #lanes = new Map<string, number>();
  #reason: unknown;
  #idle: Deferred<void> | undefined;

  constructor(options: ParkedItemsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.length;
  }

  /** Whether an item has to wait because an earlier one of its lane does. */
  holds(entry: WriterEntry): boolean {
    return this.#lanes.size > 0 && this.#lanes.has(laneOf(entry.item));
  }

  /** Adds entries that follow those already there in their lanes. */
  add({ entries, reason }: Blocked): void {
    if (entries.length === 0) return;
    this.#reason = reason ?? this.#reason;
    for (const entry of entries) this.#count(entry, 1);
    this.#entries.push(...entries);
    if (this.#idle) return;
    this.#idle = deferred<void>();
    void this.#retry();
  }

  /** Resolves when all are written; undefined if there are none. */
  idle(): Promise<void> | undefined {
    return this.#idle?.promise;
  }

  #count(entry: WriterEntry, change: 1 | -1): void {
    const lane = laneOf(entry.item);
    const count = (this.#lanes.get(lane) ?? 0) + change;
    if (count === 0) this.#lanes.delete(lane);
    else this.#lanes.set(lane, count);
  }

  /** Never rejects. */
  async #retry(): Promise<void> {
    const { clock, signal } = this.#options;
    try {
      for (let round = 1; this.#entries.length > 0; round += 1) {
        await sleep(clock, backoffMs(POLICY, round), signal);
        if (await this.#tryAll()) round = 0;
        else this.#report(round);
      }
    } catch (error) {
      // Stopped: nothing more is written.
      for (const entry of this.#entries.splice(0)) entry.reject(error);
      this.#lanes.clear();
    }
    this.#idle?.resolve();
    this.#idle = undefined;
  }

  /** Tries all entries once. Returns whether any was written. */
  async #tryAll(): Promise<boolean> {
    const before = this.#entries.length;
    const pending = [...this.#entries];
    const left: WriterEntry[] = [];
    while (pending.length > 0) {
      const lanes = new Set(left.map(({ item }) => laneOf(item)));
      const isBehind = ({ item }: WriterEntry): boolean => lanes.has(laneOf(item));
      const chunk = pending.splice(0, countWithin(pending, this.#options.bounds));
      const tried = chunk.filter((entry) => !isBehind(entry));
      const { entries, reason } = tried.length === 0 ? NOTHING : await this.#options.write(tried);
      this.#reason = reason ?? this.#reason;
      const blocked = new Set(entries);
      left.push(...chunk.filter((entry) => isBehind(entry) || blocked.has(entry)));
      for (const entry of tried) if (!blocked.has(entry)) this.#count(entry, -1);
    }
    // What was added meanwhile comes after what is left.
    this.#entries = [...left, ...this.#entries.slice(before)];
    return left.length < before;
  }

  #report(round: number): void {
    if (round !== SILENT_ROUNDS && round % REMINDER_ROUNDS !== 0) return;
    const reason = this.#reason instanceof Error ? this.#reason.message : String(this.#reason);
    this.#options.logger.warn(`${this.#entries.length} writes are blocked, while others are not: ${reason}`);
  }
}

const NOTHING: Blocked = { entries: [], reason: undefined };
