// The flushes of a batcher that are in flight, and what may be flushed beside them. Items that share a key, such as those
// of one workflow, keep their order and are never in two flushes at a time. So a flush waits for no other, and one that is
// stuck holds back only what shares a key with it.
//
// More flushes are smaller ones, which cost more in total. So another one starts only if many items wait, or if those in
// flight take long. A heavy item is flushed alone, and others do not wait for it.
import type { BatchBounds, Entry } from './batcher.js';
import type { Clock, Timer } from './clock.js';

export interface ParallelOptions<Item> {
  /** Flushes in flight at most. */
  readonly flushesMax: number;
  /** What the item must not share with an item in another flush. */
  readonly keysOf: (item: Item) => readonly string[];
  /** How many waiting items start another flush. */
  readonly itemsMin: number;
  /** How long a flush may take before another one starts beside it, whatever the number of items. */
  readonly patienceMs: number;
  /** The weight from which an item is heavy. Default: none is. */
  readonly heavyMin?: number;
  readonly clock: Clock;
  /** False while another flush would fail as those in flight do. */
  readonly isWorthwhile?: () => boolean;
}

interface FlightOptions<Item> extends BatchBounds<Item> {
  readonly parallel?: ParallelOptions<Item>;
}

interface Flight<Item> {
  readonly entries: readonly { readonly item: Item }[];
  readonly isHeavy: boolean;
  /** Whether others do not wait for it: it is heavy, or has taken long. */
  isApart: boolean;
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
  /** Whether a heavy item was passed over. It is next. */
  #isHeavyNext = false;
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
    const isEnough = waiting >= itemsMin || (this.#isHeavyNext && this.#mayStartHeavy()) || this.#areAllApart();
    const isDue = isEnough && (isWorthwhile?.() ?? true);
    if (!isDue) this.#watch(this.#parallel);
    return isDue;
  }

  /** Takes entries from the backlog that share no key with what is in flight. Returns them, and what is left. */
  take(backlog: readonly Entry<Item, Result>[]): Taken<Item, Result> {
    const mayBeHeavy = this.#mayStartHeavy();
    const first = this.#isHeavyNext && mayBeHeavy ? 'heavy' : 'light';
    let selection = this.#select(backlog, first);
    if (selection.batch.length === 0 && mayBeHeavy)
      selection = this.#select(backlog, first === 'heavy' ? 'light' : 'heavy');
    this.#isHeavyNext = selection.hasPassedHeavy;
    // Without a batch, nothing more can start until a flush ends.
    this.#held = selection.batch.length === 0 ? backlog.length : selection.held;
    return selection;
  }

  #select(backlog: readonly Entry<Item, Result>[], wanted: Wanted): Selection<Item, Result> {
    const { keysOf, heavyMin } = this.#parallel ?? {};
    const [avoided, share] = [this.#keysInFlight(), this.#shareOf(backlog.length)];
    const selection = new Selection<Item, Result>(this.#bounds, { keysOf, heavyMin, avoided, share, wanted });
    selection.search(backlog);
    return selection;
  }

  /** One flush is kept for light items. */
  #mayStartHeavy(): boolean {
    const { flushesMax = 1 } = this.#parallel ?? {};
    let heavy = 0;
    for (const { isHeavy } of this.#flights) if (isHeavy) heavy += 1;
    return heavy < Math.max(1, flushesMax - 1);
  }

  /** Notes that the entries are in flight, until the returned function is called. */
  begin(entries: readonly Entry<Item, Result>[]): () => void {
    const { heavyMin = Infinity } = this.#parallel ?? {};
    const [first] = entries;
    const isHeavy = heavyMin < Infinity && first !== undefined && (this.#bounds.weigh?.(first.item) ?? 0) >= heavyMin;
    const flight: Flight<Item> = { entries, isHeavy, isApart: isHeavy };
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

  #areAllApart(): boolean {
    for (const { isApart } of this.#flights) if (!isApart) return false;
    return true;
  }

  #watch({ clock, patienceMs }: ParallelOptions<Item>): void {
    if (this.#timer) return;
    const watched = [...this.#flights];
    this.#timer = clock.after(patienceMs, () => {
      this.#timer = undefined;
      for (const flight of watched) flight.isApart = true;
      this.#onLate();
    });
  }
}

/** Which items a search is for. A heavy one is taken alone. */
type Wanted = 'light' | 'heavy';

interface Taken<Item, Result> {
  readonly batch: Entry<Item, Result>[];
  readonly left: Entry<Item, Result>[];
}

interface SelectionOptions<Item> {
  readonly keysOf: ((item: Item) => readonly string[]) | undefined;
  readonly heavyMin: number | undefined;
  /** The keys of what is in flight. */
  readonly avoided: readonly ReadonlySet<string>[];
  readonly share: number;
  readonly wanted: Wanted;
}

/** The search for a batch. */
class Selection<Item, Result> implements Taken<Item, Result> {
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
  /** Whether a heavy item could have been taken, but was not wanted. */
  hasPassedHeavy = false;

  constructor(bounds: BatchBounds<Item>, options: SelectionOptions<Item>) {
    this.#bounds = bounds;
    this.#options = options;
  }

  search(backlog: readonly Entry<Item, Result>[]): void {
    let count = 0;
    while (count < backlog.length && this.#offer(backlog[count] as Entry<Item, Result>)) count += 1;
    for (; count < backlog.length; count += 1) this.left.push(backlog[count] as Entry<Item, Result>);
  }

  /** Takes or leaves the entry. False if the search is over. */
  #offer(entry: Entry<Item, Result>): boolean {
    const weight = this.#bounds.weigh?.(entry.item) ?? 0;
    if (this.#isOver(weight)) return false;
    const { share, avoided, wanted, heavyMin = Infinity } = this.#options;
    const hasShare = this.batch.length >= share;
    const isHeavy = weight >= heavyMin;
    const isWanted = isHeavy === (wanted === 'heavy');
    // Keys matter only if something is in flight or left.
    const isFree = isWanted && !hasShare && avoided.length === 0 && this.left.length === 0;
    const keys = isFree ? [] : this.#keysOf(entry.item);
    const isHeld = this.#isHeld(keys);
    if (isWanted && !isHeld && (!hasShare || this.#isOfBatch(keys))) {
      this.batch.push(entry);
      this.#weight += weight;
      for (const key of keys) this.#batchKeys?.add(key);
      return true;
    }
    for (const key of keys) this.#leftKeys.add(key);
    if (isHeld) this.held += 1;
    else if (isHeavy && !this.#isOfBatch(keys)) this.hasPassedHeavy = true;
    this.left.push(entry);
    return true;
  }

  /** Whether the search ends before an entry of this weight. */
  #isOver(weight: number): boolean {
    const { itemsMax, weightMax = Infinity } = this.#bounds;
    const { length } = this.batch;
    if (length > 0 && this.#options.wanted === 'heavy') return true;
    if (this.left.length >= LEFT_MAX) return true;
    const isHeavy = weight >= (this.#options.heavyMin ?? Infinity);
    return length >= itemsMax || (length > 0 && !isHeavy && this.#weight + weight > weightMax);
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
