// One statement of a commit: the rows that its items bring, and what became of each.
import type { Sql } from '../../sql/sql.js';
import type { Database, Row } from '../database.js';

export interface PartOptions<Line, V> {
  /** Writes what the guards allow and returns the keys of what was written. */
  write(lines: readonly Line[]): Sql;
  /** What became of each line, in their order. Without it, another part of the item tells. */
  judge?(database: Database, lines: readonly Line[], written: readonly Row[]): Promise<readonly V[]>;
}

export class WritePart<Line, V = never> {
  readonly #options: PartOptions<Line, V>;
  readonly #lines: Line[] = [];
  #verdicts: readonly V[] = [];

  constructor(options: PartOptions<Line, V>) {
    this.#options = options;
  }

  /** Takes a line in. The returned function tells its verdict, once there is one. */
  add(line: Line): () => V {
    const place = this.#lines.push(line) - 1;
    return () => this.#verdicts[place] as V;
  }

  /** The statement, if there is anything to write. */
  get statement(): Sql | undefined {
    return this.#lines.length === 0 ? undefined : this.#options.write(this.#lines);
  }

  async judge(database: Database, written: readonly Row[]): Promise<void> {
    this.#verdicts = (await this.#options.judge?.(database, this.#lines, written)) ?? [];
  }
}
