// What a server has of that which Everstep uses where it can, and what it does without it, for `doctor`. Part of it was found
// out when the database was opened (`server-probe.ts`); engines find out the rest when they use it.
import type { Database } from '../database.js';
import { DatabaseAccessError, DatabaseStatementError } from '../../kernel/errors/errors.js';
import type { StoredCode } from '../../kernel/sql/sql.js';
import { findCode, missingCode, WITHOUT_CODE } from '../migrations/stored-code.js';
import { isPostgres } from './is-postgres.js';
import { withSession } from './pg-session.js';
import { poolConfig } from './postgres-config.js';
import type { PostgresDatabase } from './postgres-database.js';
import { refusesStartupOptions } from './postgres-errors.js';
import { SERVER_FEATURES, type ServerFeature } from './server-probe.js';

export interface Capability {
  readonly name: string;
  readonly isAvailable: boolean;
  /** What Everstep does without it. */
  readonly without: string;
}

interface Probe {
  readonly name: string;
  readonly without: string;
  /** Fails, or resolves to false, if the capability is missing. */
  readonly isThere: (database: PostgresDatabase, schema: string) => Promise<boolean>;
}

/** Something that was found out when the database was opened. */
function found(name: ServerFeature): Probe {
  const { without } = SERVER_FEATURES[name];
  return { name, without, isThere: async ({ options }) => !options.lacking?.has(name) };
}

/** Something that migrations store, as the catalog has it now. */
function stored(name: StoredCode): Probe {
  const isThere: Probe['isThere'] = async (database, schema) =>
    !missingCode(await findCode(database, schema), true).has(name);
  return { name, without: WITHOUT_CODE[name], isThere };
}

const PROBES: readonly Probe[] = [
  {
    name: 'sessions',
    without: 'A pooler in transaction mode: waits poll, and the lease alone says which process is alive.',
    isThere: async ({ features }) => features.hasSessions,
  },
  {
    name: 'startup options',
    without:
      'Options in the URL are set by a statement in each session; behind a pooler in transaction mode they have no effect.',
    isThere: takesStartupOptions,
  },
  found('session settings'),
  found('advisory locks'),
  found('notifications'),
  stored('triggers'),
  stored('functions'),
  found('SKIP LOCKED'),
  found('timelines'),
  found('system identifiers'),
];

/** Empty for SQLite, which always has the same, and for tables that only DBOS has made. */
export async function probeCapabilities(database: Database, schema: string): Promise<Capability[]> {
  if (!isPostgres(database) || database.dialect.lacking) return [];
  const capabilities: Capability[] = [];
  for (const { name, without, isThere } of PROBES) {
    capabilities.push({ name, without, isAvailable: await succeeds(() => isThere(database, schema)) });
  }
  return capabilities;
}

/** A statement that the server refuses says that the capability is missing. Other failures are not about it. */
async function succeeds(probe: () => Promise<boolean>): Promise<boolean> {
  try {
    return await probe();
  } catch (error) {
    if (error instanceof DatabaseAccessError || error instanceof DatabaseStatementError) return false;
    throw error;
  }
}

async function takesStartupOptions({ options }: PostgresDatabase): Promise<boolean> {
  try {
    return await withSession({ ...poolConfig(options), options: '-c application_name=everstep' }, async () => true);
  } catch (error) {
    // Other failures are not about the options, and the next statement reports them.
    return !refusesStartupOptions(error);
  }
}
