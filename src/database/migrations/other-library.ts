// Gives way to another library that is migrating the same schema. DBOS takes no lock: it reads the version once, then runs its
// statements one by one and sets the version after each, so what others do meanwhile makes it fail or moves the version back.
// While it migrates it is connected, and its last statement says so. We therefore look at the sessions of the database and
// start when it is done. A library that comes later finds a schema that is complete.
import { sleep } from '../../kernel/base/clock.js';
import { DatabaseAccessError, DatabaseStatementError } from '../../kernel/errors/errors.js';
import { quoteIdentifier, sql } from '../../kernel/sql/sql.js';
import type { Connection } from '../database.js';
import type { MigrationRun } from './migration-run.js';
import { OWN_VERSION_MAX } from './plan.js';
import { readVersions } from './versions.js';

/** Whether a session of another library is migrating. `hidden`: a session of another role, whose statements we may not see. */
type Presence = 'none' | 'hidden' | 'migrating';

/** Keeps our own migrations from being taken for another library's. */
const MARK = '/* everstep */';
const LOOK_MS = 50;
/** How long nothing may be seen of a migration before it counts as over. */
const QUIET_MS = 200;
const QUIET_HIDDEN_MS = 1000;

export function marked(text: string): string {
  return `${MARK} ${text}`;
}

/** Rolls back our transaction, so that the other library goes first. */
export class OtherLibraryMigrating extends Error {}

/** At the end of a transaction that creates tables: throws if another library is at it, or waits for this transaction. */
export async function giveWay({ connection, schema }: MigrationRun): Promise<void> {
  if ((await look(connection, schema)) === 'migrating') throw new OtherLibraryMigrating();
}

/** Whether the server lets us look at sessions. */
export async function canSeeSessions({ connection, schema }: MigrationRun): Promise<boolean> {
  try {
    await look(connection, schema);
    return true;
  } catch (error) {
    if (error instanceof DatabaseStatementError || error instanceof DatabaseAccessError) return false;
    throw error;
  }
}

/** Returns when no other library is migrating, or none has made progress for the time that a lock is waited for. */
export async function waitForOtherLibrary(run: MigrationRun): Promise<void> {
  if (!(await canSeeSessions(run))) return;
  let quietSince = run.clock.monotonic();
  let giveUpAt = quietSince + run.lockTimeoutMs;
  let isFirst = true;
  let seen = '';
  for (;;) {
    const presence = await look(run.connection, run.schema);
    const [version, everstep] = await readVersions(run.source);
    const isBetween = version > 0 && version < OWN_VERSION_MAX;
    if (presence === 'none' && !isBetween && isFirst) return;
    isFirst = false;
    const now = run.clock.monotonic();
    const versions = `${version} ${everstep}`;
    if (versions !== seen) giveUpAt = now + run.lockTimeoutMs;
    if (versions !== seen || presence === 'migrating') quietSince = now;
    seen = versions;
    if (now - quietSince >= (presence === 'hidden' ? QUIET_HIDDEN_MS : QUIET_MS)) return;
    if (now >= giveUpAt) {
      run.logger.warn('Another library is migrating the system database and makes no progress; migrating beside it.');
      return;
    }
    await sleep(run.clock, LOOK_MS);
  }
}

async function look(connection: Connection, schema: string): Promise<Presence> {
  const rows = await connection.run(sql`
    SELECT
      bool_or(
        s.query NOT LIKE ${`${MARK}%`}
        AND (
          pg_backend_pid() = ANY(pg_blocking_pids(s.pid))
          OR (
            (s.state <> 'idle' OR s.state_change > clock_timestamp() - INTERVAL '3 seconds')
            AND (
              s.query ~* 'information_schema\\.tables.*dbos_migrations'
              OR s.query LIKE '%"dbos_migrations" SET "version"%'
              OR s.query LIKE '%"dbos_migrations" ("version")%'
              OR (s.query ~* '^\\s*(create|alter|drop)\\s' AND strpos(s.query, ${quoteIdentifier(schema)}) > 0)
            )
          )
        )
      ) AS is_migrating,
      bool_or(s.state IS NULL) AS is_hidden
    FROM pg_catalog.pg_stat_activity AS s
    WHERE s.datname = current_database()
      AND COALESCE(s.backend_type, 'client backend') = 'client backend'
      AND s.pid <> pg_backend_pid()`);
  if (rows[0]?.['is_migrating'] === true) return 'migrating';
  return rows[0]?.['is_hidden'] === true ? 'hidden' : 'none';
}
