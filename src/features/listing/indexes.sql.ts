// Optional indexes of `workflow_status`, created and dropped while the application runs.
import { DatabaseStatementError } from '../../kernel/errors/errors.js';
import { indexName, OPTIONAL_INDEXES, type OptionalIndex } from './index-fields.js';
import { ident, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Connection, Database } from '../../database/database.js';

const workflows = table('workflow_status');

/** The names of the valid indexes of `workflow_status`. */
export async function findIndexes(database: Database): Promise<Set<string>> {
  const found = await database.read(
    database.dialect.name === 'postgres'
      ? sql`
          SELECT c.relname AS name
          FROM pg_catalog.pg_index AS i
          JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
          WHERE i.indrelid = to_regclass(${database.dialect.table('workflow_status')}) AND i.indisvalid`
      : sql`SELECT i.name FROM sqlite_master AS i WHERE i.type = 'index' AND i.tbl_name = 'workflow_status'`,
  );
  return new Set(found.map((row) => row['name'] as string));
}

/**
 * Creates the index, on Postgres without blocking writes. One left invalid by an interrupted build is rebuilt. Its
 * condition has a form that only lists repeat, so that it affects no other plan. False if another session builds an index:
 * a build waits for all statements, so one that waits for the build would be a deadlock.
 */
export async function createIndex(database: Database, index: OptionalIndex): Promise<boolean> {
  if ((await findIndexes(database)).has(indexName(index))) return true;
  const column = ident(OPTIONAL_INDEXES[index]);
  const isPostgres = database.dialect.name === 'postgres';
  return database.exclusive(async (connection) => {
    if (isPostgres) {
      if (await isBuilding(connection)) return false;
      await remove(connection, index);
    }
    const how: Sql = isPostgres ? sql`CONCURRENTLY` : sql``;
    const what: Sql =
      index === 'workflow_id_prefix'
        ? sql`(${column} text_pattern_ops)`
        : sql`(${column}, created_at) WHERE CASE WHEN ${column} IS NULL THEN FALSE ELSE TRUE END`;
    await connection.run(sql`CREATE INDEX ${how} IF NOT EXISTS ${ident(indexName(index))} ON ${workflows} ${what}`);
    return true;
  });
}

/** Whether another session builds an index of the table. Those of other roles are hidden, and some servers lack the view. */
async function isBuilding(connection: Connection): Promise<boolean> {
  try {
    const [row] = await connection.run(sql`
      SELECT COUNT(*) AS n
      FROM pg_catalog.pg_stat_progress_create_index AS p
      WHERE p.datname = current_database() AND p.relid = to_regclass(${connection.dialect.table('workflow_status')})`);
    return Number(row?.['n']) > 0;
  } catch (error) {
    if (error instanceof DatabaseStatementError) return false;
    throw error;
  }
}

export async function dropIndex(database: Database, index: OptionalIndex): Promise<void> {
  await database.exclusive((connection) => remove(connection, index));
}

async function remove(connection: Connection, index: OptionalIndex): Promise<void> {
  const how: Sql = connection.dialect.name === 'postgres' ? sql`CONCURRENTLY` : sql``;
  // An index is in its table's schema.
  await connection.run(sql`DROP INDEX ${how} IF EXISTS ${table(indexName(index))}`);
}
