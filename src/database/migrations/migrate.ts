// Migrates the system database to the version that this build needs, or verifies it. A current database is not touched: no
// lock, no write. One that is ahead of this build is accepted.
import { invariant } from '../../kernel/base/assert.js';
import { type Clock, systemClock } from '../../kernel/base/clock.js';
import type { DLogger } from '../../kernel/base/log.js';
import { DBOSInitializationError } from '../../kernel/errors/errors.js';
import { quoteIdentifier } from '../../kernel/sql/sql.js';
import type { Database } from '../database.js';
import { grantStatements } from './grants.js';
import { addMissingCode, findCode, missingCode } from './stored-code.js';
import { lackingIn } from './dbos-tables.js';
import { migratePostgres } from './migrate-postgres.js';
import { migrateSqlite } from './migrate-sqlite.js';
import { restoreFunctions } from './shared-functions.js';
import { codeIn, latestVersion, pendingMigrations, tracksOf } from './plan.js';
import { checkSchemaName } from './schema-name.js';
import { databaseSource, isCurrent, readVersions, type Versions } from './versions.js';

export interface MigrateOptions {
  /** The schema of the system tables on Postgres. Must be the one that the database was opened with. */
  readonly schema?: string;
  /** False omits the NOTIFY triggers. */
  readonly useListenNotify?: boolean;
  readonly logger: DLogger;
  readonly clock?: Clock;
  /** How often, and for how long, to try to get the lock of another migrating process. */
  readonly lockPollMs?: number;
  readonly lockTimeoutMs?: number;
  /** Called after each migration. */
  readonly onProgress?: (progress: { readonly done: number; readonly total: number }) => void;
}

/** The versions before and after; equal if there was nothing to do. */
export interface MigrationResult {
  readonly from: number;
  readonly to: number;
}

const SCHEMA = 'dbos';
const LOCK_POLL_MS = 1000;
const LOCK_TIMEOUT_MS = 30_000;

/** Applies the pending migrations. Safe to call from many processes at once, and again after a failure. */
export async function migrate(database: Database, options: MigrateOptions): Promise<MigrationResult> {
  const schema = schemaOf(database, options.schema);
  const [from, everstep] = await readVersions(databaseSource(database, schema));
  if (isCurrent(database.dialect.name, [from, everstep])) {
    await settleCode(database, [from, everstep], options);
    return { from, to: from };
  }
  const tracks = tracksOf(database.dialect.name);
  const total = pendingMigrations(tracks[0], from).length + pendingMigrations(tracks[1], everstep).length;
  let done = 0;
  const onApplied = (): void => options.onProgress?.({ done: (done += 1), total });
  const to =
    database.dialect.name === 'postgres'
      ? await migratePostgres(database, {
          schema,
          useListenNotify: options.useListenNotify ?? true,
          logger: options.logger,
          clock: options.clock ?? systemClock,
          lockPollMs: options.lockPollMs ?? LOCK_POLL_MS,
          lockTimeoutMs: options.lockTimeoutMs ?? LOCK_TIMEOUT_MS,
          onApplied,
        })
      : await migrateSqlite(database, onApplied);
  await settleCode(database, await readVersions(databaseSource(database, schema)), options);
  options.logger.info(`Migrated the system database from version ${from} to ${to}.`);
  return { from, to };
}

/** What other libraries, runs without NOTIFY, and servers that refuse code leave undone at a current version. */
async function settleCode(database: Database, versions: Versions, options: MigrateOptions): Promise<void> {
  if (database.dialect.name !== 'postgres') return;
  const { logger, useListenNotify = true } = options;
  const schema = schemaOf(database, options.schema);
  const found = await findCode(database, schema);
  await restoreFunctions(database, found, { schema, versions, logger });
  database.dialect.refused = await addMissingCode(database, found, { schema, versions, useListenNotify, logger });
}

export interface VerifyOptions {
  readonly schema?: string;
  /** Whether a database that only DBOS has migrated will do. For clients, which create nothing. */
  readonly acceptsDBOS?: boolean;
}

/** Throws if the database is behind this build. For `runMigrations: false`. */
export async function verify(database: Database, options: VerifyOptions = {}): Promise<void> {
  const schema = schemaOf(database, options.schema);
  const versions = await readVersions(databaseSource(database, schema));
  if (isCurrent(database.dialect.name, versions)) {
    // Triggers that only notify are none that statements rely on.
    if (database.dialect.name === 'postgres')
      database.dialect.refused = missingCode(await findCode(database, schema), false);
    return;
  }
  const lacking = options.acceptsDBOS ? lackingIn(versions) : undefined;
  if (lacking && database.lack) {
    database.lack(lacking);
    return;
  }
  const needed = tracksOf(database.dialect.name).map(latestVersion);
  throw new DBOSInitializationError(
    `The system database is at version ${versions[0]} (Everstep's own tables at ${versions[1]}), but this build needs ` +
      `${needed[0]} (and ${needed[1]}). Run \`npx everstep migrate\` with a role that owns the schema, ` +
      'or launch the application with `runMigrations: true`.',
  );
}

/** Grants a role what an application needs. Postgres only; the caller must own the schema. */
export async function grantAccess(database: Database, options: { schema?: string; role: string }): Promise<void> {
  invariant(database.dialect.name === 'postgres', 'only Postgres has roles');
  const schema = schemaOf(database, options.schema);
  const isThere = (statement: string): boolean =>
    !database.dialect.refused?.has('functions') || codeIn(statement) === undefined;
  const statements = grantStatements(schema, options.role).filter(isThere);
  await database.exclusive((connection) => connection.script(`${statements.join(';\n')};`));
}

function schemaOf(database: Database, schema = SCHEMA): string {
  checkSchemaName(schema);
  invariant(
    database.dialect.name === 'sqlite' || database.dialect.table('x') === `${quoteIdentifier(schema)}."x"`,
    'migrations run in the schema that the database was opened with',
  );
  return schema;
}
