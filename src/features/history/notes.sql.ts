// What a verb says about the change that it makes: where it comes from, why, and who asked for it. Triggers copy it into the
// journal. On Postgres it is a setting of the transaction, on SQLite a row that exists only within it.
import { setting, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Database, Executor, Row } from '../../database/database.js';

export interface ChangeNote {
  /** Default: what the change looks like. */
  readonly source?: 'api' | 'deadline' | 'resume' | 'rewind' | 'handed back' | 'schedule' | 'global timeout' | 'import';
  readonly reason?: string | undefined;
  readonly actor?: string | undefined;
  /** The first step that a rewound workflow runs again. */
  readonly startStep?: number;
}

const notes = table('journal_notes');

function isEmpty(note: ChangeNote | undefined): boolean {
  return note === undefined || Object.values(note).every((value) => value === undefined);
}

function write({ dialect }: Pick<Executor, 'dialect'>, note: ChangeNote): Sql {
  const text = JSON.stringify(note);
  return dialect.name === 'postgres'
    ? sql`SELECT ${setting('everstep.change', text)}`
    : sql`INSERT INTO ${notes} (kind, note) VALUES ('change', ${text}) ON CONFLICT (kind) DO UPDATE SET note = excluded.note`;
}

/** The setting ends with its transaction. A row has to be deleted before the commit. */
function clear({ dialect }: Pick<Executor, 'dialect'>): Sql[] {
  return dialect.name === 'postgres' ? [] : [sql`DELETE FROM ${notes} WHERE kind = 'change'`];
}

/** Runs a statement, in a commit with the note if there is one. */
export async function runNoted(database: Database, note: ChangeNote | undefined, statement: Sql): Promise<Row[]> {
  if (note === undefined || isEmpty(note)) return database.run(statement);
  const [, found = []] = await database.commit([write(database, note), statement, ...clear(database)]);
  return found;
}

/** Runs statements of a transaction under the note. */
export async function noted<T>(tx: Executor, note: ChangeNote | undefined, body: () => Promise<T>): Promise<T> {
  if (note === undefined || isEmpty(note)) return body();
  await tx.run(write(tx, note));
  const result = await body();
  for (const statement of clear(tx)) await tx.run(statement);
  return result;
}
