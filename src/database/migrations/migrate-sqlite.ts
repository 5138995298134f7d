// Runs migrations on SQLite. Each is one BEGIN IMMEDIATE transaction that reads the version first, so any number of
// processes may run them concurrently.
import { sql, table } from '../../kernel/sql/sql.js';
import type { Connection, Database } from '../database.js';
import { type Migration, migrationFailure, type Track } from './migration.js';
import { addedColumn, pendingMigrations, splitStatements, tracksOf, versionAfter } from './plan.js';
import { readVersion, type VersionSource } from './versions.js';

/** Applies the pending migrations and returns the version reached. */
export async function migrateSqlite(database: Database, onApplied: () => void): Promise<number> {
  const [shared, everstep] = tracksOf('sqlite');
  return database.exclusive(async (connection) => {
    const version = await migrateTrack(connection, shared, onApplied);
    await migrateTrack(connection, everstep, onApplied);
    return version;
  });
}

async function migrateTrack(connection: Connection, track: Track, onApplied: () => void): Promise<number> {
  for (;;) {
    let next: Migration | undefined;
    try {
      const version = await connection.transaction(async (tx) => {
        const current = await readVersion(sourceOf(tx), track);
        next = pendingMigrations(track, current)[0];
        if (next) await apply(tx, track, next);
        return current;
      });
      if (!next) return version;
      onApplied();
    } catch (error) {
      throw migrationFailure(next ? `Migration ${next.number} (${next.name})` : 'Reading the version', error);
    }
  }
}

async function apply(tx: Connection, track: Track, migration: Migration): Promise<void> {
  for (const statement of splitStatements(migration.sql)) {
    if (!(await hasAddedColumn(tx, statement))) await tx.script(statement);
  }
  const versionTable = table(track.versionTable);
  await tx.run(sql`CREATE TABLE IF NOT EXISTS ${versionTable} (version INTEGER NOT NULL PRIMARY KEY)`);
  await tx.run(sql`DELETE FROM ${versionTable}`);
  await tx.run(sql`INSERT INTO ${versionTable} (version) VALUES (${versionAfter(track, migration)})`);
}

/** SQLite has no ADD COLUMN IF NOT EXISTS, and another library may have added the column. */
async function hasAddedColumn(tx: Connection, statement: string): Promise<boolean> {
  const added = addedColumn(statement);
  if (!added) return false;
  const found = await tx.run(sql`SELECT 1 FROM pragma_table_info(${added.table}) WHERE name = ${added.column}`);
  return found.length > 0;
}

function sourceOf(tx: Connection): VersionSource {
  return { dialectName: 'sqlite', schema: '', run: (statement) => tx.run(statement) };
}
