// Looks up whether runs still own their workflows. Concurrent lookups share one query.
import { Batcher, type Entry } from '../kernel/base/batcher.js';
import type { Database } from '../database/database.js';
import type { Owned } from './rows/lifecycle.js';
import { findLost } from './rows/owners.js';

const LOOKUPS_MAX = 500;

export class OwnerLookup {
  readonly #database: Database;
  readonly #batcher: Batcher<Owned, boolean>;

  constructor(database: Database) {
    this.#database = database;
    this.#batcher = new Batcher<Owned, boolean>({
      flush: (batch) => this.#lookUp(batch),
      itemsMax: LOOKUPS_MAX,
      backlogMax: Infinity,
    });
  }

  /** Whether the workflow still has this owner. */
  owns(owned: Owned): Promise<boolean> {
    return this.#batcher.submit(owned);
  }

  async #lookUp(batch: readonly Entry<Owned, boolean>[]): Promise<void> {
    const distinct = [...new Set(batch.map(({ item }) => item))];
    const lost = await findLost(this.#database, distinct);
    for (const { item, resolve } of batch) resolve(!lost.has(item));
  }
}
