// The triggers that notify of what other programs write. A database that was migrated without NOTIFY lacks them, and no
// later migration would add them: its version is current.
import type { DLogger } from '../../base/log.js';
import { DatabaseAccessError, DatabaseStatementError } from '../../model/errors/errors.js';
import { oneOf, quoteIdentifier, sql } from '../../sql/sql.js';
import type { Database } from '../database.js';
import { lacksAdvisoryLocks } from '../postgres/postgres-errors.js';
import { POSTGRES_EVERSTEP_MIGRATIONS } from './embedded.js';
import { renderMigration } from './plan.js';

const MESSAGE_TRIGGER = 'dbos_notifications_trigger';
const TRIGGERS = [
  MESSAGE_TRIGGER,
  'everstep_workflow_inserted',
  'everstep_workflow_updated',
  'everstep_workflow_deleted',
  'everstep_schedule_changed',
  'everstep_queues_changed',
];
/** Have the latest versions of the triggers' functions, and all triggers but the one on messages. */
const TRIGGER_MIGRATIONS = [4, 14, 18];
/** The same for all processes. */
const LOCK = 1234567892;

/** Adds the triggers that are missing. */
export async function addNotifyTriggers(database: Database, schema: string, logger: DLogger): Promise<void> {
  if (await hasTriggers(database, schema)) return;
  const scripts = POSTGRES_EVERSTEP_MIGRATIONS.filter(({ number }) => TRIGGER_MIGRATIONS.includes(number)).map(
    (migration) => renderMigration(migration, { schema, useListenNotify: true, isOnline: true }),
  );
  const target = quoteIdentifier(schema);
  const add = ({ isLocked }: { readonly isLocked: boolean }): Promise<void> =>
    database.exclusive((connection) =>
      connection.transaction(async (tx) => {
        if (isLocked) await tx.run(sql`SELECT pg_advisory_xact_lock(${LOCK})`);
        await tx.script(`
          ${scripts.join('\n')}
          CREATE OR REPLACE TRIGGER ${MESSAGE_TRIGGER} AFTER INSERT ON ${target}.notifications
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
    // What other programs write is then found by polling.
    logger.warn(`The triggers that notify of what other programs write cannot be added: ${error.message}`);
  }
}

/** Whether all of them are there. */
export async function hasTriggers(database: Database, schema: string): Promise<boolean> {
  const found = await database.read(sql`
    SELECT t.tgname
    FROM pg_catalog.pg_trigger AS t
    JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = ${schema} AND t.tgname ${oneOf(TRIGGERS)}`);
  return found.length >= TRIGGERS.length;
}
