// The indexes of a database. An INVALID index is being built or dropped by another session, or was left by a CREATE or DROP
// INDEX CONCURRENTLY that was killed.
import { quoteIdentifier, sql } from '../../kernel/sql/sql.js';
import type { Connection } from '../database.js';
import { marked } from './other-library.js';

export interface IndexState {
  readonly name: string;
  readonly isValid: boolean;
  /** True for an INVALID index that another session is still building or dropping. */
  readonly isBeingBuilt: boolean;
}

/** A concurrent build holds a lock on the table while it runs. Autovacuum takes the same lock. */
export async function readIndexStates(connection: Connection, schema: string): Promise<IndexState[]> {
  const rows = await connection.run(sql`
    SELECT
      class.relname AS name,
      entry.indisvalid AS is_valid,
      NOT entry.indisvalid AND EXISTS (
        SELECT 1
        FROM pg_catalog.pg_locks AS held
        JOIN pg_catalog.pg_stat_activity AS session ON session.pid = held.pid
        WHERE held.relation = entry.indrelid
          AND held.mode = 'ShareUpdateExclusiveLock'
          AND held.granted
          AND session.datname = current_database()
          AND session.backend_type = 'client backend'
          AND session.pid <> pg_backend_pid()
      ) AS is_being_built
    FROM pg_catalog.pg_index AS entry
    JOIN pg_catalog.pg_class AS class ON class.oid = entry.indexrelid
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE namespace.nspname = ${schema}`);
  return rows.map((row) => ({
    name: String(row['name']),
    isValid: row['is_valid'] === true,
    isBeingBuilt: row['is_being_built'] === true,
  }));
}

export async function isIndexBeingBuilt(connection: Connection, schema: string): Promise<boolean> {
  return (await readIndexStates(connection, schema)).some((index) => index.isBeingBuilt);
}

export async function dropIndex(connection: Connection, schema: string, name: string): Promise<void> {
  await connection.script(
    marked(`DROP INDEX CONCURRENTLY IF EXISTS ${quoteIdentifier(schema)}.${quoteIdentifier(name)}`),
  );
}
