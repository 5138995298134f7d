// One statement of a commit: its rows, and the verdict on each.
import type { Sql } from '../../sql/sql.js';
import type { Database, Row } from '../database.js';

export interface PartOptions<NewRow, V> {
  /** The statement: it writes what its guard allows and returns the keys written. */
  write(rows: readonly NewRow[]): Sql;
  /** The verdict on each row, in the same order. Omitted if another part of the item has the verdict. */
  judge?(database: Database, rows: readonly NewRow[], written: readonly Row[]): Promise<readonly V[]>;
}

export class WritePart<NewRow, V = never> {
  readonly #options: PartOptions<NewRow, V>;
  readonly #rows: NewRow[] = [];
  #verdicts: readonly V[] = [];

  constructor(options: PartOptions<NewRow, V>) {
    this.#options = options;
  }

  /** Adds a row. The returned function gives its verdict after `judge`. */
  add(row: NewRow): () => V {
    const index = this.#rows.push(row) - 1;
    return () => this.#verdicts[index] as V;
  }

  /** Undefined if there is nothing to write. */
  get statement(): Sql | undefined {
    return this.#rows.length === 0 ? undefined : this.#options.write(this.#rows);
  }

  async judge(database: Database, written: readonly Row[]): Promise<void> {
    this.#verdicts = (await this.#options.judge?.(database, this.#rows, written)) ?? [];
  }
}
