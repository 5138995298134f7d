// What the migration tests share: databases at a given version, and a clock that runs by itself.
import { readdirSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import pg from 'pg';
import type { Clock } from '../../../src/kernel/base/clock.js';
import { newID } from '../../../src/kernel/base/ids.js';
import { type DLogger, silentLogger } from '../../../src/kernel/base/log.js';
import type { Database } from '../../../src/database/database.js';
import type { TestDialect } from '../../rig/dialects.js';
import {
  addedColumn,
  pendingMigrations,
  renderMigration,
  splitStatements,
  tracksOf,
  versionAfter,
} from '../../../src/database/migrations/plan.js';
import { raw } from './catalog.js';
import { POSTGRES_SCHEMA, SQLITE_SCHEMA } from './expected-schema.js';

export const LATEST = 123;
/** The migrations of Everstep's own tables, by the files they are written in. */
export function ownMigrations(dialect: TestDialect['name']): { readonly number: number; readonly name: string }[] {
  const folder = new URL(`../../../migrations/${dialect}/everstep/`, import.meta.url);
  return readdirSync(folder)
    .sort()
    .map((file) => ({ number: Number(file.slice(0, 4)), name: file.slice(5, -'.sql'.length) }));
}

export const EVERSTEP_LATEST = Math.max(...ownMigrations('postgres').map(({ number }) => number));

export function expectedSchema(database: Database): typeof POSTGRES_SCHEMA {
  return database.dialect.name === 'postgres' ? POSTGRES_SCHEMA : SQLITE_SCHEMA;
}

/** Every version at which a run can have been interrupted. */
export function interruptedVersions(dialect: 'postgres' | 'sqlite'): number[] {
  const [shared] = tracksOf(dialect);
  return shared.migrations.map((migration) => versionAfter(shared, migration));
}

/** Brings an empty database to a version by hand, without the runner, and leaves Everstep's own tables out. */
export async function buildAt(database: Database, version: number, schema = 'dbos'): Promise<void> {
  const [shared] = tracksOf(database.dialect.name);
  const isPostgres = database.dialect.name === 'postgres';
  const table = isPostgres ? `"${schema}".dbos_migrations` : 'dbos_migrations';
  const columns = new Set<string>();
  const statements = pendingMigrations(shared, 0)
    .filter((migration) => versionAfter(shared, migration) <= version)
    .flatMap((migration) =>
      splitStatements(renderMigration(migration, { schema, useListenNotify: true, isOnline: false })),
    )
    .filter((statement) => {
      const added = addedColumn(statement);
      const name = `${added?.table}.${added?.column}`;
      return isPostgres || !added || (!columns.has(name) && columns.add(name));
    });
  await database.exclusive((connection) =>
    connection.script(
      // Marked, as a run of ours would do it: it is not to be taken for another library's.
      `/* everstep */ ${[
        ...(isPostgres ? [`CREATE SCHEMA "${schema}"`] : []),
        `CREATE TABLE ${table} (version BIGINT NOT NULL PRIMARY KEY)`.replace(
          'BIGINT',
          isPostgres ? 'BIGINT' : 'INTEGER',
        ),
        `INSERT INTO ${table} VALUES (${version})`,
        ...statements,
      ].join(';\n')}`,
    ),
  );
}

/** Runs plain SQL on the database, for tests only. */
export async function execute(database: Database, text: string): Promise<void> {
  await database.exclusive((connection) => connection.script(text));
}

/** The rows of a plain query, for tests only. */
export function query(database: Database, text: string): Promise<Readonly<Record<string, unknown>>[]> {
  return database.read(raw(text));
}

/** A connection of its own that a test can hold a lock with. */
export async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  client.on('error', () => {});
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** Another role on the same server, and the URL with which it logs in. */
export async function createRole(url: string): Promise<{ role: string; roleURL: string }> {
  const admin = await connect(url);
  const role = `role "${newID()}`;
  const quoted = `"${role.replaceAll('"', '""')}"`;
  await admin.query(`CREATE ROLE ${quoted} LOGIN PASSWORD 'secret'`);
  onTestFinished(async () => {
    await admin.query(`DROP OWNED BY ${quoted}; DROP ROLE ${quoted}`);
  });
  const roleURL = new URL(url);
  roleURL.username = encodeURIComponent(role);
  roleURL.password = 'secret';
  return { role, roleURL: roleURL.toString() };
}

/** Waits until a question to the database is answered with at least one row, and returns the first. */
export async function until(client: pg.Client, question: string): Promise<Record<string, unknown>> {
  for (;;) {
    const { rows } = (await client.query(question)) as { rows: Record<string, unknown>[] };
    if (rows[0]) return rows[0];
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** The session that waits for a lock while it runs a statement like this. */
export function waiting(statement: string): string {
  return `
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query ILIKE '%${statement}%'`;
}

/** A clock on which every wait passes at once. `waits` tells how long they would have been. */
export function skippingClock(): Clock & { readonly waits: number[] } {
  const waits: number[] = [];
  const waited = (): number => waits.reduce((sum, wait) => sum + wait, 0);
  return {
    waits,
    now: waited,
    monotonic: waited,
    after(delayMs, run) {
      waits.push(delayMs);
      const handle = setImmediate(run);
      return { cancel: () => clearImmediate(handle) };
    },
  };
}

/** A logger that keeps its warnings. */
export function keepingLogger(): DLogger & { readonly warnings: string[] } {
  const warnings: string[] = [];
  return { ...silentLogger, warnings, warn: (entry) => warnings.push(String(entry)) };
}
