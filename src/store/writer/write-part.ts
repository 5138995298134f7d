// One statement of a commit: the rows that its items bring, and what became of each.
import type { Sql } from '../../sql/sql.js';
import type { Database, Row } from '../database.js';

export interface PartOptions<NewRow, V> {
  /** Writes what the guards allow and returns the keys of what was written. */
  write(rows: readonly NewRow[]): Sql;
  /** What became of each row, in their order. Without it, another part of the item tells. */
  judge?(database: Database, rows: readonly NewRow[], written: readonly Row[]): Promise<readonly V[]>;
}

export class WritePart<NewRow, V = never> {
  readonly #options: PartOptions<NewRow, V>;
  readonly #rows: NewRow[] = [];
  #verdicts: readonly V[] = [];

  constructor(options: PartOptions<NewRow, V>) {
    this.#options = options;
  }

  /** Takes a row in. The returned function tells its verdict, once there is one. */
  add(row: NewRow): () => V {
    const index = this.#rows.push(row) - 1;
    return () => this.#verdicts[index] as V;
  }

  /** The statement, if there is anything to write. */
  get statement(): Sql | undefined {
    return this.#rows.length === 0 ? undefined : this.#options.write(this.#rows);
  }

  async judge(database: Database, written: readonly Row[]): Promise<void> {
    this.#verdicts = (await this.#options.judge?.(database, this.#rows, written)) ?? [];
  }
}
