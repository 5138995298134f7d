// Creates and migrates the completion table in the application's database. On Postgres it is shared with DBOS: same
// names, columns, versions and advisory lock.
import { createHash } from 'node:crypto';
import { DBOSInitializationError } from '../../kernel/errors/errors.js';
import { quoteIdentifier } from '../../kernel/sql/sql.js';

/** Runs one statement without parameters and returns its rows. */
export type DataSourceSQLExecutor = (sql: string) => Promise<readonly Record<string, unknown>[]>;

export interface DataSourceMigrationOptions {
  /** Migrates the completion table at launch; false only checks its version. Default: true. */
  readonly runMigrations?: boolean;
}

/** The row that the query of `checkSchemaInstallationPG` returns. */
export interface CheckSchemaInstallationReturn {
  schema_exists: number;
  table_exists: number;
}

/** Holds the version of the completion table. */
export const DATASOURCE_MIGRATIONS_TABLE = 'dbos_transaction_completion_migrations';
const TABLE = 'transaction_completion';
/** The server ends a migration that hangs while it holds the lock. */
const IDLE_MAX = '30s';

function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** A query for whether the schema and the completion table exist. */
export function checkSchemaInstallationPG(schemaName = 'dbos'): string {
  const schema = quoteText(schemaName);
  return `SELECT
  EXISTS (SELECT 1 FROM information_schema.schemata WHERE schema_name = ${schema}) AS schema_exists,
  EXISTS (
    SELECT 1 FROM information_schema.tables WHERE table_schema = ${schema} AND table_name = ${quoteText(TABLE)}
  ) AS table_exists`;
}

/** The statement that creates the schema of the completion table. */
export function createTransactionCompletionSchemaPG(schemaName = 'dbos'): string {
  return `CREATE SCHEMA IF NOT EXISTS ${quoteIdentifier(schemaName)}`;
}

/** The statement that creates the completion table. */
export function createTransactionCompletionTablePG(schemaName = 'dbos'): string {
  return `CREATE TABLE IF NOT EXISTS ${quoteIdentifier(schemaName)}.${TABLE} (
  workflow_id TEXT NOT NULL,
  function_num INT4 NOT NULL,
  output TEXT,
  error TEXT,
  created_at BIGINT NOT NULL DEFAULT (EXTRACT(EPOCH FROM now()) * 1000)::bigint,
  PRIMARY KEY (workflow_id, function_num)
)`;
}

/** Returns a row if the completion table exists in the SQLite file. */
export const FIND_TABLE_SQLITE = `SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = '${TABLE}'`;

export const CREATE_TABLE_SQLITE = `CREATE TABLE IF NOT EXISTS ${TABLE} (
  workflow_id TEXT NOT NULL,
  function_num INTEGER NOT NULL,
  output TEXT,
  error TEXT,
  created_at INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000 AS INTEGER)),
  PRIMARY KEY (workflow_id, function_num)
)`;

/** The migrations of the completion table, in order. The first leads to version 1. */
export function getDataSourceMigrationsPG(schemaName = 'dbos'): string[] {
  return [createTransactionCompletionTablePG(schemaName)];
}

/**
 * Migrates the completion table to the latest version. All statements must run in one transaction, whose advisory lock
 * serializes concurrent migrations. If the table is up to date, nothing is written, so that no privileges are needed.
 */
export async function migrateDataSourcePG(exec: DataSourceSQLExecutor, schemaName = 'dbos'): Promise<void> {
  const migrations = getDataSourceMigrationsPG(schemaName);
  if ((await readVersion(exec, schemaName)) >= migrations.length) return;
  await exec(`SET LOCAL idle_in_transaction_session_timeout = ${quoteText(IDLE_MAX)}`);
  const server = await exec('SELECT version() AS version');
  // CockroachDB has no advisory locks.
  if (!/cockroach/i.test(String(server[0]?.['version']))) {
    await exec(`SELECT 1 AS locked FROM pg_advisory_xact_lock(${lockKey(schemaName)})`);
  }
  const version = await readVersion(exec, schemaName);
  if (version >= migrations.length) return;
  const schema = quoteIdentifier(schemaName);
  // Even CREATE … IF NOT EXISTS needs the privilege to create.
  const schemas = await exec(`SELECT 1 AS found FROM pg_catalog.pg_namespace WHERE nspname = ${quoteText(schemaName)}`);
  if (schemas.length === 0) await exec(`CREATE SCHEMA ${schema}`);
  const versions = `${schema}.${DATASOURCE_MIGRATIONS_TABLE}`;
  if (!(await hasTable(exec, schemaName, DATASOURCE_MIGRATIONS_TABLE))) {
    await exec(`CREATE TABLE ${versions} (version BIGINT NOT NULL PRIMARY KEY)`);
  }
  for (const migration of migrations.slice(version)) await exec(migration);
  await exec(
    version === 0
      ? `INSERT INTO ${versions} (version) VALUES (${migrations.length})`
      : `UPDATE ${versions} SET version = ${migrations.length}`,
  );
}

/** Throws unless the completion table has the version that this release needs. Writes nothing. */
export async function verifyDataSourcePG(
  exec: DataSourceSQLExecutor,
  schemaName = 'dbos',
  dataSourceName?: string,
): Promise<void> {
  const version = await readVersion(exec, schemaName);
  const latest = getDataSourceMigrationsPG(schemaName).length;
  // Later releases only make changes that this one can work with.
  if (version >= latest) return;
  const which = dataSourceName === undefined ? 'A data source' : `Data source "${dataSourceName}"`;
  throw new DBOSInitializationError(
    `${which} needs version ${latest} of the table "${schemaName}".${TABLE}, but finds version ${version}, and may not ` +
      'migrate it because runMigrations is false. Call initializeDBOSSchema of its class with a role that may create tables.',
  );
}

/** The statements that grant a role what it needs at run time. */
export function getDataSourcePermissionsSQL(schemaName: string, roleName: string): string[] {
  const schema = quoteIdentifier(schemaName);
  const role = quoteIdentifier(roleName);
  return [
    `GRANT USAGE ON SCHEMA ${schema} TO ${role}`,
    `GRANT SELECT, INSERT, DELETE ON ${schema}.${TABLE} TO ${role}`,
    `GRANT SELECT ON ${schema}.${DATASOURCE_MIGRATIONS_TABLE} TO ${role}`,
  ];
}

/** Migrates, and grants a role what it needs. All statements must run in one transaction. */
export async function initializeDataSourceSchemaPG(
  exec: DataSourceSQLExecutor,
  schemaName = 'dbos',
  applicationRole?: string,
): Promise<void> {
  await migrateDataSourcePG(exec, schemaName);
  if (applicationRole === undefined) return;
  for (const grant of getDataSourcePermissionsSQL(schemaName, applicationRole)) await exec(grant);
}

/** Drops the completion table and its version. Keeps the schema, which may hold other tables. */
export async function removeDataSourceSchemaPG(exec: DataSourceSQLExecutor, schemaName = 'dbos'): Promise<void> {
  const schema = quoteIdentifier(schemaName);
  for (const name of [TABLE, DATASOURCE_MIGRATIONS_TABLE]) await exec(`DROP TABLE IF EXISTS ${schema}.${name}`);
}

async function readVersion(exec: DataSourceSQLExecutor, schemaName: string): Promise<number> {
  if (!(await hasTable(exec, schemaName, DATASOURCE_MIGRATIONS_TABLE))) return 0;
  const rows = await exec(`SELECT version FROM ${quoteIdentifier(schemaName)}.${DATASOURCE_MIGRATIONS_TABLE}`);
  return Number(rows[0]?.['version'] ?? 0);
}

/** Reads the catalog: the information schema hides tables for which the role has no privileges. */
async function hasTable(exec: DataSourceSQLExecutor, schemaName: string, name: string): Promise<boolean> {
  const rows = await exec(
    `SELECT 1 AS found FROM pg_catalog.pg_tables WHERE schemaname = ${quoteText(schemaName)} AND tablename = ${quoteText(name)}`,
  );
  return rows.length > 0;
}

/** The key of the advisory lock, the same as in DBOS. */
function lockKey(schemaName: string): string {
  const digest = createHash('sha256').update(`dbos.datasource_migrations.${schemaName}`).digest();
  return digest.readBigInt64BE(0).toString();
}
