// What the writes of a run say about themselves in the journal, with level `full`: one row each, in the same commit. On
// Postgres it is a part of the same statement, so the row is there if and only if the write is. SQLite, which cannot write to
// two tables in one statement, has a second one that looks at what was written.
import type { ColumnType, Dialect, Sql, Value } from '../../kernel/sql/sql.js';

/** What a write says about itself. */
export interface JournalFact {
  readonly eventType: string;
  readonly executor: string | null;
  /** The number of the attempt, if the write is the first of it. */
  readonly attempt: number | null;
  /** A JSON object. */
  readonly details: string | null;
}

export interface WithFact {
  readonly fact?: JournalFact;
}

export const factColumns = [
  { name: 'event_type', type: 'text' },
  { name: 'executor', type: 'text' },
  { name: 'attempt', type: 'int' },
  { name: 'details', type: 'json' },
] as const satisfies readonly { readonly name: string; readonly type: ColumnType }[];

export function factValues(fact: JournalFact | undefined): Value[] {
  return fact ? [fact.eventType, fact.executor, fact.attempt, fact.details] : [null, null, null, null];
}

export function hasFact({ fact }: WithFact): boolean {
  return fact !== undefined;
}

/** Rows to write, with their facts. */
export interface FactualWrite<Row> {
  /** Writes the rows alone. */
  write(rows: readonly Row[]): Sql;
  /** Writes rows and facts and returns what `write` returns. On Postgres. */
  writeWithFacts(rows: readonly Row[]): Sql;
  /** Writes the facts of the rows that are there and have none. On SQLite, after `write`. */
  writeFacts(rows: readonly Row[]): Sql;
}

/** The statements that write the rows and their facts. The first one returns what `write` returns. */
export function statementsOf<Row extends WithFact>(
  { name }: Pick<Dialect, 'name'>,
  write: FactualWrite<Row>,
  written: readonly Row[],
): Sql[] {
  if (!written.some(hasFact)) return [write.write(written)];
  return name === 'postgres' ? [write.writeWithFacts(written)] : [write.write(written), write.writeFacts(written)];
}
