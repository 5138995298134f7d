// A process may hold several copies of SQLite: the built-in one, and each installed `better-sqlite3`. A file's locks belong to
// the process, so copies do not see each other's: two of them write at a time, and what one has committed is lost. Whoever
// uses the file of the system database in this process has to use our copy.
import { SqliteCopiesError } from '../../kernel/errors/database-errors.js';
import { render, sql } from '../../kernel/sql/sql.js';
import type { Database, Row } from '../database.js';

const BUILD = sql`
  SELECT sqlite_version() AS version, sqlite_source_id() AS source,
    (SELECT group_concat(o.compile_options) FROM pragma_compile_options AS o) AS options`;

/** Throws if the connection behind `query` is of another copy. Two copies of one build look the same. */
export async function refuseOtherCopy(
  database: Database,
  query: (text: string) => Promise<readonly Row[]>,
): Promise<void> {
  const [ours] = await database.read(BUILD);
  const [theirs] = await query(render(BUILD, database.dialect).text);
  if (!theirs || (ours?.['source'] === theirs['source'] && ours?.['options'] === theirs['options'])) return;
  throw new SqliteCopiesError(
    'This process uses two copies of SQLite for the file of the system database: that of Everstep is ' +
      `${String(ours?.['version'])}, that of this connection ${String(theirs['version'])}. They do not see each other's locks, so ` +
      'writes would be lost. Use one: Everstep takes better-sqlite3 if it is installed, else node:sqlite. ' +
      '`npm ls better-sqlite3` says how often it is.',
  );
}
