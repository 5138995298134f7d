// The slots of an engine: room for workflows from queues. Who has one is known here and nowhere else, so that whatever claims
// knows how many more it may take.
//
//   free ──reserve──► reserved ──fill──► taken ──release──► free
//
// A claim in flight reserves slots. What it gets takes them at once, before it runs: to load its history may take a while. A
// run that only waits for something outside of it keeps its place in its queue, but leaves its slot in the process to others.
import type { Run } from './run.js';

/** A workflow that was claimed, or its run. */
export type SlotHolder = Pick<Run, 'workflowID' | 'owner' | 'queueName' | 'partitionKey'>;

export class Slots {
  /** How many workflows from queues may run at a time. */
  readonly #max: number;
  readonly #taken = new Set<string>();
  readonly #waiting = new Set<string>();
  /** How many are taken by workflows of each queue, and of each partition, by `placeOf`. */
  readonly #counts = new Map<string, number>();
  #reserved = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** How many more workflows may be claimed. Negative if runs that waited have gone on. */
  get free(): number {
    return this.#max - this.#reserved - this.busy;
  }

  /** How many are taken by workflows that do not wait. */
  get busy(): number {
    return this.#taken.size - this.#waiting.size;
  }

  /** How many workflows of a queue, or of one of its partitions, have slots here. */
  count(queueName: string, partitionKey?: string): number {
    return this.#counts.get(placeOf(queueName, partitionKey)) ?? 0;
  }

  /** Keeps slots for what a claim may get. The returned function gives them back. */
  reserve(count: number): () => void {
    this.#reserved += count;
    let isHeld = true;
    return () => {
      if (isHeld) this.#reserved -= count;
      isHeld = false;
    };
  }

  /** A workflow takes a slot, unless it has one. */
  fill(holder: SlotHolder): void {
    const key = keyOf(holder);
    if (holder.queueName === null || this.#taken.has(key)) return;
    this.#taken.add(key);
    this.#change(holder, 1);
  }

  /** A workflow gives up its slot, unless it has none. */
  release(holder: SlotHolder): void {
    const key = keyOf(holder);
    this.#waiting.delete(key);
    if (this.#taken.delete(key)) this.#change(holder, -1);
  }

  setWaiting(holder: SlotHolder, isWaiting: boolean): void {
    const key = keyOf(holder);
    if (isWaiting && this.#taken.has(key)) this.#waiting.add(key);
    else this.#waiting.delete(key);
  }

  #change({ queueName, partitionKey }: SlotHolder, change: 1 | -1): void {
    const places = [placeOf(queueName ?? '')];
    if (partitionKey !== null) places.push(placeOf(queueName ?? '', partitionKey));
    for (const place of places) {
      const count = (this.#counts.get(place) ?? 0) + change;
      if (count === 0) this.#counts.delete(place);
      else this.#counts.set(place, count);
    }
  }
}

function keyOf({ workflowID, owner }: SlotHolder): string {
  return `${owner} ${workflowID}`;
}

function placeOf(queueName: string, partitionKey?: string): string {
  return partitionKey === undefined ? queueName : JSON.stringify([queueName, partitionKey]);
}
