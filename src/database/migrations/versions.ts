// Reads the version of a database. It needs neither a lock nor write privileges.
import { oneOf, type Sql, sql, table } from '../../kernel/sql/sql.js';
import { MigrationError } from '../../kernel/errors/errors.js';
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

/** In two round trips, because every launch makes them. */
export async function readVersions(source: VersionSource): Promise<Versions> {
  const [shared, everstep] = tracksOf(source.dialectName);
  const found = await findTables(source, [shared.versionTable, everstep.versionTable]);
  if (found.size === 0) return [0, 0];
  const versionOf = ({ versionTable }: Track): Sql =>
    found.has(versionTable) ? sql`(SELECT MAX(v.version) FROM ${table(versionTable)} AS v)` : sql`0`;
  const [row] = await source.run(sql`SELECT ${versionOf(shared)} AS shared, ${versionOf(everstep)} AS everstep`);
  const versions = [Number(row?.['shared'] ?? 0), Number(row?.['everstep'] ?? 0)] as const;
  refuseUnreleased(everstep, versions[1]);
  return versions;
}

/** The versions before the first migration are those of databases that were made before there was a release. */
function refuseUnreleased({ migrations }: Track, version: number): void {
  if (version <= 0 || version >= (migrations[0]?.number ?? 0)) return;
  throw new MigrationError(
    `The system database was made before the first release of Everstep (its own tables are at version ${version}) and cannot ` +
      'be migrated. Export its workflows with the version that has made it, and import them into a new database.',
  );
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
  return (await findTables(source, [name])).size > 0;
}

async function findTables(source: VersionSource, names: readonly string[]): Promise<ReadonlySet<unknown>> {
  const statement =
    source.dialectName === 'postgres'
      ? sql`
        SELECT t.tablename AS name
        FROM pg_catalog.pg_tables AS t
        WHERE t.schemaname = ${source.schema} AND t.tablename ${oneOf(names)}`
      : sql`SELECT m.name FROM sqlite_master AS m WHERE m.type = 'table' AND m.name ${oneOf(names)}`;
  return new Set((await source.run(statement)).map((row) => row['name']));
}

/** Whether there is nothing to migrate. A database ahead of this build is current. */
export function isCurrent(dialectName: 'postgres' | 'sqlite', versions: Versions): boolean {
  return tracksOf(dialectName).every((track, index) => pendingMigrations(track, versions[index] ?? 0).length === 0);
}
