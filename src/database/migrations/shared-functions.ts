// Our forms of the functions that DBOS defines, too. A DBOS that migrates after us, from an older version or from none that it
// could see, replaces them by its own, and no later migration would put ours back: the version is current.
import { DatabaseAccessError, DatabaseStatementError } from '../../kernel/errors/errors.js';
import type { Database } from '../database.js';
import { POSTGRES_EVERSTEP_MIGRATIONS } from './embedded.js';
import { marked } from './other-library.js';
import { latestVersion, renderMigration, tracksOf } from './plan.js';
import type { CodeOptions, FoundCode } from './stored-code.js';

/** What only our form of a function contains, and the migration that has it. In the order in which to run them. */
const OURS = [
  { name: 'notifications_function', mark: 'everstep.quiet', migration: 4 },
  { name: 'send_message', mark: 'Earlier versions of this function stored the key alone', migration: 10 },
  { name: 'enqueue_workflow', mark: 'everstep_queues', migration: 15 },
] as const;

/** Defines those functions again that another library has replaced, unless its version is later than ours. */
export async function restoreFunctions(
  database: Database,
  found: FoundCode,
  { schema, versions, logger }: Omit<CodeOptions, 'useListenNotify'>,
): Promise<void> {
  if (versions[0] > latestVersion(tracksOf('postgres')[0])) return;
  const replaced = findReplaced(found);
  if (replaced.length === 0) return;
  const numbers = new Set<number>(OURS.filter(({ name }) => replaced.includes(name)).map(({ migration }) => migration));
  const options = { schema, useListenNotify: true, isOnline: true };
  const scripts = POSTGRES_EVERSTEP_MIGRATIONS.filter(({ number }) => number >= Math.min(...numbers))
    .filter(({ number }) => OURS.some(({ migration }) => migration === number))
    .map((migration) => renderMigration(migration, options));
  try {
    await database.exclusive((connection) => connection.transaction((tx) => tx.script(marked(scripts.join('\n')))));
  } catch (error) {
    if (!(error instanceof DatabaseAccessError || error instanceof DatabaseStatementError)) throw error;
    // Theirs work, too: what SQL enqueues is found later, and messages notify inside their commit.
    logger.warn(`The functions that another library has replaced cannot be restored: ${error.message}`);
  }
}

function findReplaced({ functions }: FoundCode): string[] {
  return OURS.filter(({ name, mark }) => functions.get(name)?.includes(mark) === false).map(({ name }) => name);
}
