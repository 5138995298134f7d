// What a server has of that which Everstep uses where it can, and what it does without it. Servers that speak Postgres's
// protocol, roles and poolers differ in it. Engines find it out when they use it; this is for `doctor`.
import { DatabaseAccessError, DatabaseStatementError } from '../../model/errors/errors.js';
import { lock, type Sql, sql, table } from '../../sql/sql.js';
import type { Database } from '../database.js';
import { hasTriggers } from '../migrations/notify-triggers.js';

export interface Capability {
  readonly name: string;
  readonly isAvailable: boolean;
  /** What Everstep does without it. */
  readonly without: string;
  /** Whether engines cannot work without it. */
  readonly isRequired: boolean;
}

interface Probe {
  readonly name: string;
  readonly without: string;
  readonly isRequired?: boolean;
  /** Fails, or resolves to false, if the capability is missing. */
  readonly isThere: (database: Database, schema: string) => Promise<boolean>;
}

/** Runs the statement, which changes nothing. */
function statement(probed: Sql): Probe['isThere'] {
  return async (database) => {
    await database.read(probed);
    return true;
  };
}

const PROBES: readonly Probe[] = [
  {
    name: 'sessions',
    without: 'A pooler in transaction mode: waits poll, and the lease alone says which process is alive.',
    isThere: async ({ features }) => features?.hasSessions !== false,
  },
  {
    name: 'session settings',
    without: 'The planner may choose plans that read whole tables.',
    isThere: statement(sql`SELECT set_config('enable_seqscan', 'off', TRUE), set_config('everstep.quiet', 'on', TRUE)`),
  },
  {
    name: 'advisory locks',
    without:
      'Claims of queues with limits take turns by a row lock, the lease alone says which process is alive, and a commit ' +
      'that reaches the server late is not refused.',
    isThere: statement(sql`SELECT pg_try_advisory_xact_lock_shared(0)`),
  },
  {
    name: 'notifications',
    without: 'Waits poll. Set useListenNotify to false.',
    isThere: statement(sql`SELECT pg_notify('everstep_probe', '')`),
  },
  {
    name: 'triggers',
    without: 'What other programs write is looked for every second while they are connected.',
    isThere: hasTriggers,
  },
  {
    name: 'functions',
    without: 'Programs cannot enqueue workflows or send messages by SQL functions.',
    isThere: async (database, schema) => {
      const found = await database.read(sql`
        SELECT p.proname
        FROM pg_catalog.pg_proc AS p
        JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
        WHERE n.nspname = ${schema} AND p.proname IN ('enqueue_workflow', 'send_message')`);
      return found.length >= 2;
    },
  },
  {
    name: 'SKIP LOCKED',
    without: 'Engines cannot claim workflows from queues.',
    isRequired: true,
    isThere: statement(sql`
      SELECT w.workflow_uuid
      FROM ${table('workflow_status')} AS w
      WHERE w.workflow_uuid = ''
      ${lock('skip', 'w')}`),
  },
];

/** Empty for SQLite, which always has the same, and for tables that only DBOS has made. */
export async function probeCapabilities(database: Database, schema: string): Promise<Capability[]> {
  if (database.dialect.name !== 'postgres' || database.dialect.lacking) return [];
  const found: Capability[] = [];
  for (const { name, without, isRequired = false, isThere } of PROBES) {
    found.push({ name, without, isRequired, isAvailable: await succeeds(() => isThere(database, schema), isRequired) });
  }
  return found;
}

/**
 * A statement that the server refuses says that the capability is missing. A required one may be denied to the role that
 * looks, and not to engines. Other failures are not about it.
 */
async function succeeds(probe: () => Promise<boolean>, isRequired: boolean): Promise<boolean> {
  try {
    return await probe();
  } catch (error) {
    if (error instanceof DatabaseAccessError) return isRequired;
    if (error instanceof DatabaseStatementError) return false;
    throw error;
  }
}
