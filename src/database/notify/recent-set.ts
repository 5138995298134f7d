// A set that remembers the latest additions, at least `max` of them. In two generations: to delete the oldest one by one, a
// Set would walk over those deleted before.
export class RecentSet<T> {
  readonly #max: number;
  #young = new Set<T>();
  #old = new Set<T>();

  constructor(max: number) {
    this.#max = max;
  }

  add(value: T): void {
    this.#young.add(value);
    if (this.#young.size < this.#max) return;
    this.#old = this.#young;
    this.#young = new Set();
  }

  /** False if it was not there, or is forgotten. */
  delete(value: T): boolean {
    const wasYoung = this.#young.delete(value);
    return this.#old.delete(value) || wasYoung;
  }
}
