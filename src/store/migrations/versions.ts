// Reads the version of a database. It needs neither a lock nor write privileges.
import { type Sql, sql, table } from '../../sql/sql.js';
import type { Database, Row } from '../database.js';
import type { Track } from './migration.js';
import { pendingMigrations, tracksOf } from './plan.js';

/** The version of each track, in the order of `tracksOf`. */
export type Versions = readonly [shared: number, everstep: number];

/** What to read a version from: the database, or a held connection. */
export interface VersionSource {
  readonly dialectName: 'postgres' | 'sqlite';
  readonly schema: string;
  run(statement: Sql): Promise<Row[]>;
}

export function databaseSource(database: Database, schema: string): VersionSource {
  return { dialectName: database.dialect.name, schema, run: (statement) => database.read(statement) };
}

export async function readVersions(source: VersionSource): Promise<Versions> {
  const [shared, everstep] = tracksOf(source.dialectName);
  return [await readVersion(source, shared), await readVersion(source, everstep)];
}

/** The version of a track; 0 if its table is missing or empty. */
export async function readVersion(source: VersionSource, track: Track): Promise<number> {
  if (!(await hasTable(source, track.versionTable))) return 0;
  const [row] = await source.run(sql`
    SELECT version
    FROM ${table(track.versionTable)}
    ORDER BY version DESC
    LIMIT 1`);
  return Number(row?.['version'] ?? 0);
}

export async function hasTable(source: VersionSource, name: string): Promise<boolean> {
  const statement =
    source.dialectName === 'postgres'
      ? sql`SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = ${source.schema} AND tablename = ${name}`
      : sql`SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ${name}`;
  return (await source.run(statement)).length > 0;
}

/** Whether there is nothing to migrate. A database ahead of this build is current. */
export function isCurrent(dialectName: 'postgres' | 'sqlite', versions: Versions): boolean {
  return tracksOf(dialectName).every((track, index) => pendingMigrations(track, versions[index] ?? 0).length === 0);
}
