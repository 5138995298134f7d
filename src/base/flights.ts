// The flushes of a batcher that are in flight, and what may be flushed beside them. Items that share a key, such as those
// of one workflow, keep their order and are never in two flushes at a time. So a flush waits for no other, and one that is
// stuck holds back only what shares a key with it.
//
// More flushes are smaller ones, which cost more in total. So another one starts only if many items wait, or if those in
// flight take long.
import type { BatchBounds, Entry } from './batcher.js';
import type { Clock, Timer } from './clock.js';

export interface ParallelOptions<Item> {
  /** Flushes in flight at most. */
  readonly flushesMax: number;
  /** What the item must not share with an item in another flush. */
  keysOf(item: Item): readonly string[];
  /** How many waiting items start another flush. */
  readonly itemsMin: number;
  /** How long a flush may take before another one starts beside it, whatever the number of items. */
  readonly patienceMs: number;
  readonly clock: Clock;
  /** False while another flush would fail as those in flight do. */
  isWorthwhile?(): boolean;
}

interface FlightOptions<Item> extends BatchBounds<Item> {
  readonly parallel?: ParallelOptions<Item>;
}

interface Flight<Item> {
  readonly entries: readonly { readonly item: Item }[];
  /** Whether it has taken long while others waited. From then on they do not. */
  isLate: boolean;
  /** Made when something is to start beside it. */
  keys?: ReadonlySet<string>;
}

/** Entries that a search for a batch leaves behind before it ends. */
const LEFT_MAX = 1000;

export class Flights<Item, Result> {
  readonly #bounds: BatchBounds<Item>;
  readonly #parallel: ParallelOptions<Item> | undefined;
  readonly #onLate: () => void;
  readonly #flights = new Set<Flight<Item>>();
  /** Entries of the backlog that share keys with what is in flight. */
  #held = 0;
  #timer: Timer | undefined;

  /** Calls `onLate` when a flush takes long and others wait. */
  constructor(options: FlightOptions<Item>, onLate: () => void) {
    this.#bounds = options;
    this.#parallel = options.parallel;
    this.#onLate = onLate;
  }

  get count(): number {
    return this.#flights.size;
  }

  /** Whether a flush may start, with so many entries in the backlog. */
  mayStart(backlog: number): boolean {
    if (this.#flights.size === 0) return true;
    const waiting = backlog - this.#held;
    if (!this.#parallel || waiting <= 0 || this.#flights.size >= this.#parallel.flushesMax) return false;
    const { itemsMin, isWorthwhile } = this.#parallel;
    const isDue = (waiting >= itemsMin || this.#areAllLate()) && (isWorthwhile?.() ?? true);
    if (!isDue) this.#watch(this.#parallel);
    return isDue;
  }

  /** Takes entries from the backlog that share no key with what is in flight. Returns them, and what is left. */
  take(backlog: Entry<Item, Result>[]): { batch: Entry<Item, Result>[]; left: Entry<Item, Result>[] } {
    const selection = new Selection<Item, Result>(this.#bounds, {
      keysOf: this.#parallel?.keysOf,
      avoided: this.#keysInFlight(),
      share: this.#shareOf(backlog.length),
    });
    let count = 0;
    while (count < backlog.length && selection.offer(backlog[count] as Entry<Item, Result>)) count += 1;
    // Without a batch, nothing more can start until a flush ends.
    this.#held = selection.batch.length === 0 ? backlog.length : selection.held;
    return { batch: selection.batch, left: [...selection.left, ...backlog.slice(count)] };
  }

  /** Notes that the entries are in flight, until the returned function is called. */
  begin(entries: readonly Entry<Item, Result>[]): () => void {
    const flight: Flight<Item> = { entries, isLate: false };
    this.#flights.add(flight);
    return () => {
      this.#flights.delete(flight);
      this.#held = 0;
      if (this.#flights.size > 0) return;
      this.#timer?.cancel();
      this.#timer = undefined;
    };
  }

  /** How many entries a flush takes if there are enough for another one beside it. */
  #shareOf(backlog: number): number {
    const { flushesMax = 1, itemsMin = Infinity } = this.#parallel ?? {};
    const isDivided = flushesMax - this.#flights.size > 1 && backlog >= 2 * itemsMin;
    return isDivided ? Math.ceil(backlog / 2) : Infinity;
  }

  #keysInFlight(): ReadonlySet<string>[] {
    const { keysOf } = this.#parallel ?? {};
    if (!keysOf) return [];
    return [...this.#flights].map(
      (flight) => (flight.keys ??= new Set(flight.entries.flatMap(({ item }) => keysOf(item)))),
    );
  }

  #areAllLate(): boolean {
    for (const { isLate } of this.#flights) if (!isLate) return false;
    return true;
  }

  #watch({ clock, patienceMs }: ParallelOptions<Item>): void {
    if (this.#timer) return;
    const watched = [...this.#flights];
    this.#timer = clock.after(patienceMs, () => {
      this.#timer = undefined;
      for (const flight of watched) flight.isLate = true;
      this.#onLate();
    });
  }
}

interface SelectionOptions<Item> {
  readonly keysOf: ((item: Item) => readonly string[]) | undefined;
  /** The keys of what is in flight. */
  readonly avoided: readonly ReadonlySet<string>[];
  readonly share: number;
}

/** The search for a batch. */
class Selection<Item, Result> {
  readonly #bounds: BatchBounds<Item>;
  readonly #options: SelectionOptions<Item>;
  /** The keys of what is left: what follows it must not overtake it. */
  readonly #leftKeys = new Set<string>();
  /** Made when the batch has its share. */
  #batchKeys: Set<string> | undefined;
  #weight = 0;
  readonly batch: Entry<Item, Result>[] = [];
  readonly left: Entry<Item, Result>[] = [];
  /** How many are left because of what is in flight or left. */
  held = 0;

  constructor(bounds: BatchBounds<Item>, options: SelectionOptions<Item>) {
    this.#bounds = bounds;
    this.#options = options;
  }

  /** Takes or leaves the entry. False if the search is over. */
  offer(entry: Entry<Item, Result>): boolean {
    const { itemsMax, weightMax = Infinity, weigh } = this.#bounds;
    const weight = weigh?.(entry.item) ?? 0;
    const { length } = this.batch;
    if (length >= itemsMax || (length > 0 && this.#weight + weight > weightMax)) return false;
    if (this.left.length >= LEFT_MAX) return false;
    const { share, avoided } = this.#options;
    const hasShare = length >= share;
    // Keys matter only if something is in flight or left.
    const keys = hasShare || avoided.length > 0 || this.left.length > 0 ? this.#keysOf(entry.item) : [];
    const isHeld = this.#isHeld(keys);
    if (isHeld || (hasShare && !this.#isOfBatch(keys))) {
      for (const key of keys) this.#leftKeys.add(key);
      if (isHeld) this.held += 1;
      this.left.push(entry);
      return true;
    }
    this.batch.push(entry);
    this.#weight += weight;
    for (const key of keys) this.#batchKeys?.add(key);
    return true;
  }

  #isHeld(keys: readonly string[]): boolean {
    return keys.some((key) => this.#leftKeys.has(key) || this.#options.avoided.some((others) => others.has(key)));
  }

  /** What shares keys with the batch joins it: in another one it would have to wait. */
  #isOfBatch(keys: readonly string[]): boolean {
    this.#batchKeys ??= new Set(this.batch.flatMap(({ item }) => this.#keysOf(item)));
    return keys.some((key) => this.#batchKeys?.has(key));
  }

  #keysOf(item: Item): readonly string[] {
    return this.#options.keysOf?.(item) ?? [];
  }
}
