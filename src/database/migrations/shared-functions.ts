// Our forms of the functions that DBOS defines, too. A DBOS that migrates after us, from an older version or from none that it
// could see, replaces them by its own, and no later migration would put ours back: the version is current.
import { DatabaseAccessError, DatabaseStatementError } from '../../kernel/errors/errors.js';
import type { Database } from '../database.js';
import { POSTGRES_EVERSTEP_MIGRATIONS } from './embedded.js';
import { marked } from './other-library.js';
import { latestVersion, renderMigration, splitStatements, tracksOf } from './plan.js';
import type { CodeOptions, FoundCode } from './stored-code.js';

/** What only our form of a function contains. */
const OURS = [
  { name: 'notifications_function', mark: 'everstep.quiet' },
  { name: 'send_message', mark: 'Earlier versions of this function stored the key alone' },
  { name: 'enqueue_workflow', mark: 'everstep_queues' },
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
  const options = { schema, useListenNotify: true, isOnline: true };
  const definitions = POSTGRES_EVERSTEP_MIGRATIONS.flatMap((migration) =>
    splitStatements(renderMigration(migration, options)).filter((statement) =>
      replaced.some((name) => new RegExp(`^CREATE OR REPLACE FUNCTION .*\\.${name}\\(`, 'm').test(statement)),
    ),
  );
  const script = marked(definitions.map((definition) => `${definition};`).join('\n'));
  try {
    await database.exclusive((connection) => connection.transaction((tx) => tx.script(script)));
  } catch (error) {
    if (!(error instanceof DatabaseAccessError || error instanceof DatabaseStatementError)) throw error;
    // Theirs work, too: what SQL enqueues is found later, and messages notify inside their commit.
    logger.warn(`The functions that another library has replaced cannot be restored: ${error.message}`);
  }
}

function findReplaced({ functions }: FoundCode): string[] {
  return OURS.filter(({ name, mark }) => functions.get(name)?.includes(mark) === false).map(({ name }) => name);
}
