// The trigger that notifies of messages. A database that was migrated without NOTIFY lacks it, and no later migration would
// add it: its version is current.
import type { DLogger } from '../../base/log.js';
import { DatabaseAccessError, DatabaseStatementError } from '../../model/errors/errors.js';
import { quoteIdentifier, sql } from '../../sql/sql.js';
import type { Database } from '../database.js';
import { lacksAdvisoryLocks } from '../postgres/advisory-locks.js';
import { POSTGRES_EVERSTEP_MIGRATIONS } from './embedded.js';
import { renderMigration } from './plan.js';

const TRIGGER = 'dbos_notifications_trigger';
/** Has the latest version of the trigger's function. */
const FUNCTION_MIGRATION = 4;
/** The same for all processes. */
const LOCK = 1234567892;

/** Adds the trigger if it is missing. */
export async function addNotifyTrigger(database: Database, schema: string, logger: DLogger): Promise<void> {
  if (await hasTrigger(database, schema)) return;
  const migration = POSTGRES_EVERSTEP_MIGRATIONS.find(({ number }) => number === FUNCTION_MIGRATION);
  if (!migration) return;
  const target = quoteIdentifier(schema);
  const add = ({ isLocked }: { readonly isLocked: boolean }): Promise<void> =>
    database.exclusive((connection) =>
      connection.transaction(async (tx) => {
        if (isLocked) await tx.run(sql`SELECT pg_advisory_xact_lock(${LOCK})`);
        await tx.script(`
          ${renderMigration(migration, { schema, useListenNotify: true, isOnline: true })}
          DROP TRIGGER IF EXISTS ${TRIGGER} ON ${target}.notifications;
          CREATE TRIGGER ${TRIGGER} AFTER INSERT ON ${target}.notifications
            FOR EACH ROW EXECUTE FUNCTION ${target}.notifications_function();`);
      }),
    );
  try {
    await add({ isLocked: true }).catch((error: unknown) => {
      if (!lacksAdvisoryLocks(error)) throw error;
      return add({ isLocked: false });
    });
  } catch (error) {
    if (!(error instanceof DatabaseAccessError || error instanceof DatabaseStatementError)) throw error;
    // Messages of other programs are then found by polling.
    logger.warn(`The trigger that notifies of messages cannot be added: ${error.message}`);
  }
}

async function hasTrigger(database: Database, schema: string): Promise<boolean> {
  const found = await database.read(sql`
    SELECT 1
    FROM pg_catalog.pg_trigger AS t
    JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = ${schema} AND c.relname = 'notifications' AND t.tgname = ${TRIGGER}`);
  return found.length > 0;
}
