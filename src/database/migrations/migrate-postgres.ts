// Runs migrations on Postgres. An advisory lock serialises processes. They are safe without it, too: a migration in a
// transaction first moves the version row, on which others wait and then find it moved; an online one that comes too late is
// repaired before the run ends. Other libraries take no lock; `other-library.ts` gives way to them.
//
//   empty schema ──► create all in one transaction ──► done
//        ▲                    └─ another is at it ──┐
//        └──────────────────────────────────────────┤
//   read version ──none pending──► repair indexes ──► done
//        ▲    └─next─► apply ──applied, or another runner was faster or is at it──┐
//        └────────────────────────────────────────────────────────────────────────┘
import { DatabaseAccessError, MigrationError } from '../../kernel/errors/errors.js';
import { quoteIdentifier, sql, table } from '../../kernel/sql/sql.js';
import type { Connection, Database } from '../database.js';
import { isIndexBeingBuilt } from './index-states.js';
import { runOnline, settleIndexes } from './migrate-online.js';
import { type Migration, migrationFailure, type Track } from './migration.js';
import { type Observation, withMigrationLock } from './migration-lock.js';
import {
  ATTEMPTS_MAX,
  ignoreLostRace,
  isLostRace,
  isRetryable,
  type MigrationRun,
  type PostgresMigrateOptions,
  sleepWithJitter,
} from './migration-run.js';
import { canSeeSessions, giveWay, marked, OtherLibraryMigrating, waitForOtherLibrary } from './other-library.js';
import { latestVersion, pendingMigrations, renderMigration, SHARED_BASE, tracksOf, versionAfter } from './plan.js';
import { findRefusedCode } from './stored-code.js';
import { hasTable, isCurrent, readVersion, readVersions, type VersionSource } from './versions.js';

/** Adds the primary key of notifications. Newer databases were created with it. */
const NOTIFICATIONS_PRIMARY_KEY = 'notifications_primary_key';

/** Applies the pending migrations and returns the version reached. */
export async function migratePostgres(database: Database, options: PostgresMigrateOptions): Promise<number> {
  return database.exclusive(async (connection) => {
    const source: VersionSource = {
      dialectName: 'postgres',
      schema: options.schema,
      run: (statement) => connection.run(statement),
    };
    const observe = observer(connection, source);
    const migrateNow = async (): Promise<number> => {
      const [shared, everstep] = tracksOf('postgres');
      const refused = await findRefusedCode(connection, options.schema);
      const empty: MigrationRun = { ...options, connection, source, isOnline: false, refused };
      if (await createAll(empty)) return readVersion(source, shared);
      await waitForOtherLibrary(empty);
      const from = await readVersion(source, shared);
      const run: MigrationRun = { ...empty, isOnline: from > 0 };
      await refuseOtherNumbering(run, from);
      const before = await readVersions(source);
      const version = await migrateTrack(run, shared);
      await migrateTrack(run, everstep);
      await settleIndexes(run, [shared, everstep], before);
      return version;
    };
    // The lock belongs to a session. Behind a transaction pooler it could not be released.
    if (database.features?.hasSessions === false) return migrateNow();
    return withMigrationLock(connection, { ...options, observe }, migrateNow);
  });
}

/** Creates everything in one transaction, so that other libraries see all or nothing. False if the tables exist. */
async function createAll(run: MigrationRun): Promise<boolean> {
  const isWatched = await canSeeSessions(run);
  for (let attempt = 1; !(await hasTable(run.source, tracksOf('postgres')[0].versionTable)); attempt += 1) {
    try {
      await run.connection.transaction(async (tx) => {
        await createTracks({ ...run, connection: tx });
        if (isWatched) await giveWay({ ...run, connection: tx });
      });
      return true;
    } catch (error) {
      const isGivingWay = error instanceof OtherLibraryMigrating;
      if (!isGivingWay && (!isLostRace(error) || attempt === ATTEMPTS_MAX)) throw error;
    }
    await waitForOtherLibrary(run);
  }
  return false;
}

async function createTracks(run: MigrationRun): Promise<void> {
  const { connection, schema } = run;
  for (const track of tracksOf('postgres')) {
    await explainFailure(run, 'Creating the table that holds the version', async () => {
      await createSchema(run);
      const name = `${quoteIdentifier(schema)}.${quoteIdentifier(track.versionTable)}`;
      await connection.script(marked(`CREATE TABLE ${name} (version BIGINT NOT NULL PRIMARY KEY)`));
      await connection.run(sql`INSERT INTO ${table(track.versionTable)} (version) VALUES (${latestVersion(track)})`);
    });
    for (const migration of track.migrations) {
      await explainFailure(run, nameOf(migration), () => runScript(run, migration));
      run.onApplied?.();
    }
  }
}

/** Reports on each call whether another process has made progress since the last. */
function observer(connection: Connection, source: VersionSource): () => Promise<Observation> {
  let seen = '';
  return async () => {
    const versions = await readVersions(source);
    if (isCurrent('postgres', versions)) return 'done';
    const hasMoved = seen !== '' && seen !== versions.join();
    seen = versions.join();
    return hasMoved || (await isIndexBeingBuilt(connection, source.schema)) ? 'moving' : 'still';
  };
}

/**
 * DBOS for TypeScript has other migrations below 24. The last creates the table `streams`, which our first one does. A
 * database stays at such a version only if that library was interrupted.
 */
async function refuseOtherNumbering(run: MigrationRun, version: number): Promise<void> {
  if (version === 0 || version >= SHARED_BASE || (await hasTable(run.source, 'streams'))) return;
  throw new MigrationError(
    `Another library left schema ${quoteIdentifier(run.schema)} at version ${version}, before its tables were ` +
      'complete. Let that library finish its migrations, or drop the schema if it has no data you need.',
  );
}

async function migrateTrack(run: MigrationRun, track: Track): Promise<number> {
  await explainFailure(run, 'Creating the table that holds the version', () => createVersionTable(run, track));
  for (;;) {
    const version = await readVersion(run.source, track);
    const [next] = pendingMigrations(track, version);
    if (!next) return version;
    await waitForOtherLibrary(run);
    await explainFailure(run, nameOf(next), () => apply(run, track, next, version));
    run.onApplied?.();
  }
}

/** Creates the schema, the table and its row if missing. Checks first: the role may lack the privileges. */
async function createVersionTable(run: MigrationRun, track: Track): Promise<void> {
  const { connection, source } = run;
  const versionTable = table(track.versionTable);
  await ignoreLostRace(() => createSchema(run));
  if (!(await hasTable(source, track.versionTable))) {
    await ignoreLostRace(() =>
      connection.run(sql`CREATE TABLE IF NOT EXISTS ${versionTable} (version BIGINT NOT NULL PRIMARY KEY)`),
    );
  }
  const rows = await connection.run(sql`SELECT version FROM ${versionTable} LIMIT 1`);
  if (rows.length > 0) return;
  await connection.transaction(async (tx) => {
    // Without the lock, we would miss a row that another runner inserts and updates concurrently.
    await tx.run(sql`LOCK TABLE ${versionTable} IN SHARE ROW EXCLUSIVE MODE`);
    await tx.run(sql`
      INSERT INTO ${versionTable} (version)
      SELECT 0
      WHERE NOT EXISTS (SELECT 1 FROM ${versionTable})`);
  });
}

async function createSchema({ connection, schema }: MigrationRun): Promise<void> {
  const found = await connection.run(sql`SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = ${schema}`);
  if (found.length > 0) return;
  await connection.script(marked(`CREATE SCHEMA IF NOT EXISTS ${quoteIdentifier(schema)}`));
}

/** Applies one migration, unless another runner was faster or is at it; then the caller checks again. */
async function apply(run: MigrationRun, track: Track, migration: Migration, version: number): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      if (migration.isOnline && run.isOnline) await applyOnline(run, track, migration, version);
      else await applyInTransaction(run, track, migration, version);
      return;
    } catch (error) {
      if (!isRetryable(error, migration) || attempt === ATTEMPTS_MAX) throw error;
      run.logger.warn(`Retrying migration ${migration.number}: ${(error as Error).message}`);
      await sleepWithJitter(run);
      if ((await readVersion(run.source, track)) !== version) return;
    }
  }
}

async function applyInTransaction(
  run: MigrationRun,
  track: Track,
  migration: Migration,
  version: number,
): Promise<void> {
  await run.connection.transaction(async (tx) => {
    if (await advance(tx, track, migration, version)) await runScript({ ...run, connection: tx }, migration);
  });
}

async function runScript(run: MigrationRun, migration: Migration): Promise<void> {
  if (migration.name === NOTIFICATIONS_PRIMARY_KEY && (await hasPrimaryKey(run.connection, run.schema))) return;
  await run.connection.script(marked(renderMigration(migration, run)));
}

async function applyOnline(run: MigrationRun, track: Track, migration: Migration, version: number): Promise<void> {
  const isDone = await runOnline(run, migration, { versionTable: track.versionTable, version });
  if (isDone) await advance(run.connection, track, migration, version);
}

/** Moves the version row; false if another runner has moved it. */
async function advance(connection: Connection, track: Track, migration: Migration, version: number): Promise<boolean> {
  const moved = await connection.run(sql`
    UPDATE ${table(track.versionTable)}
    SET version = ${versionAfter(track, migration)}
    WHERE version = ${version}
    RETURNING version`);
  return moved.length > 0;
}

function nameOf({ number, name }: Migration): string {
  return `Migration ${number} (${name})`;
}

async function hasPrimaryKey(connection: Connection, schema: string): Promise<boolean> {
  const found = await connection.run(sql`
    SELECT 1
    FROM information_schema.table_constraints
    WHERE table_schema = ${schema}
      AND table_name = 'notifications'
      AND constraint_type = 'PRIMARY KEY'`);
  return found.length > 0;
}

async function explainFailure<T>(run: MigrationRun, what: string, body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    const advice =
      error instanceof DatabaseAccessError
        ? `Run \`npx everstep migrate\` with a role that may create schema ${quoteIdentifier(run.schema)} or owns it.`
        : undefined;
    throw migrationFailure(what, error, advice);
  }
}
