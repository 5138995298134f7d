// Groups many small submissions into few large flushes, without a timer. A flush starts at the end of the current turn of
// the event loop, so that follow-up work can join it; what arrives while one is in flight forms the next batch. Order is
// kept, for items with a common key if several flushes may be in flight (flights.ts). Batches are bounded in items and
// weight. Producers bound the backlog: new work awaits `room()` first, while work in progress is always accepted.
import { type Deferred, deferred } from './deferred.js';
import { Flights, type ParallelOptions } from './flights.js';

/** A submitted item and the functions that settle its promise. */
export interface Entry<Item, Result> {
  readonly item: Item;
  readonly resolve: (value: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** Bounds of one batch. */
export interface BatchBounds<Item> {
  readonly itemsMax: number;
  readonly weightMax?: number;
  /** How heavy an item is, for `weightMax`. */
  readonly weigh?: (item: Item) => number;
}

/** How many of the first entries fit into one batch: at least one. */
export function countWithin<Item>(
  entries: readonly { readonly item: Item }[],
  { itemsMax, weightMax = Infinity, weigh }: BatchBounds<Item>,
): number {
  if (!weigh) return Math.min(itemsMax, entries.length);
  let weight = 0;
  let count = 0;
  for (const { item } of entries) {
    weight += weigh(item);
    if (count >= itemsMax || (count > 0 && weight > weightMax)) break;
    count += 1;
  }
  return count;
}

export interface BatcherOptions<Item, Result> extends BatchBounds<Item> {
  /** Writes a batch and settles each entry. A rejection rejects the entries not settled by then. */
  flush(batch: readonly Entry<Item, Result>[]): Promise<void>;
  readonly backlogMax: number;
  /** Lets several flushes be in flight. Default: one. */
  readonly parallel?: ParallelOptions<Item>;
}

export class Batcher<Item, Result> {
  readonly #options: BatcherOptions<Item, Result>;
  readonly #flights: Flights<Item, Result>;
  readonly #waitingForRoom: (() => void)[] = [];
  readonly #onTurnEnd = (): void => {
    this.#isScheduled = false;
    do {
      const batch = this.#takeBatch();
      if (batch.length > 0) void this.#flush(batch);
    } while (this.#mayFlush());
  };
  #backlog: Entry<Item, Result>[] = [];
  #flushCount = 0;
  #isScheduled = false;
  #closedReason: Error | undefined;
  #idle: Deferred<void> | undefined;

  constructor(options: BatcherOptions<Item, Result>) {
    this.#options = options;
    this.#flights = new Flights(options, () => this.#schedule());
  }

  /** Resolves when the backlog is below its bound; undefined if it already is. */
  room(): Promise<void> | undefined {
    if (this.#closedReason || this.#backlog.length < this.#options.backlogMax) return undefined;
    return new Promise((resolve) => this.#waitingForRoom.push(resolve));
  }

  submit(item: Item): Promise<Result> {
    if (this.#closedReason) return Promise.reject(this.#closedReason);
    return new Promise((resolve, reject) => {
      this.#backlog.push({ item, resolve, reject });
      this.#schedule();
    });
  }

  /** Rejects further items, flushes the backlog, and resolves when all is settled. */
  async close(reason: Error): Promise<void> {
    this.#closedReason ??= reason;
    for (const wake of this.#waitingForRoom.splice(0)) wake();
    await this.idle();
  }

  /** Whether the backlog is empty and nothing is in flight. */
  get isIdle(): boolean {
    return this.#flights.count === 0 && this.#backlog.length === 0;
  }

  /** How many flushes have ended. */
  get flushCount(): number {
    return this.#flushCount;
  }

  /** Resolves when the backlog is empty and nothing is in flight. */
  async idle(): Promise<void> {
    if (this.isIdle) return;
    this.#idle ??= deferred<void>();
    await this.#idle.promise;
  }

  #mayFlush(): boolean {
    return this.#backlog.length > 0 && this.#flights.mayStart(this.#backlog.length);
  }

  #schedule(): void {
    if (this.#isScheduled || !this.#mayFlush()) return;
    this.#isScheduled = true;
    setImmediate(this.#onTurnEnd);
  }

  #takeBatch(): Entry<Item, Result>[] {
    const { batch, left } = this.#flights.take(this.#backlog);
    this.#backlog = left;
    const room = this.#options.backlogMax - left.length;
    if (room > 0) for (const wake of this.#waitingForRoom.splice(0, room)) wake();
    return batch;
  }

  async #flush(batch: readonly Entry<Item, Result>[]): Promise<void> {
    const end = this.#flights.begin(batch);
    try {
      await this.#options.flush(batch);
    } catch (error) {
      for (const entry of batch) entry.reject(error);
    }
    end();
    this.#flushCount += 1;
    this.#schedule();
    if (this.isIdle) {
      this.#idle?.resolve();
      this.#idle = undefined;
    }
  }
}
