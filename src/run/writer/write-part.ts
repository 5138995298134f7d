// One statement of a commit: its rows, and the verdict on each.
import { type Dialect, Sql } from '../../kernel/sql/sql.js';
import type { Database, Row } from '../../database/database.js';

export interface PartOptions<NewRow, V> {
  /**
   * The statements. The first one writes what its guard allows and returns the keys written; another one adds what follows
   * from it.
   */
  write(rows: readonly NewRow[], dialect: Dialect): Sql | readonly Sql[];
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

  /** None if there is nothing to write. */
  statements(dialect: Dialect): readonly Sql[] {
    if (this.#rows.length === 0) return [];
    const written = this.#options.write(this.#rows, dialect);
    return written instanceof Sql ? [written] : written;
  }

  async judge(database: Database, written: readonly Row[]): Promise<void> {
    this.#verdicts = (await this.#options.judge?.(database, this.#rows, written)) ?? [];
  }
}
