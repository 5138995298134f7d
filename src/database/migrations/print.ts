// Prints the migrations as one SQL script, for administrators who run them by hand:
//
//   npx everstep schema --print-migrations all | psql --set ON_ERROR_STOP=1 mydatabase
import { DBOSDataValidationError, InvalidSchemaNameError } from '../../kernel/errors/errors.js';
import { quoteIdentifier } from '../../kernel/sql/sql.js';
import { grantStatements } from './grants.js';
import type { Migration, Track } from './migration.js';
import {
  addedColumn,
  latestVersion,
  pendingMigrations,
  renderMigration,
  splitStatements,
  tracksOf,
  versionAfter,
} from './plan.js';
import { checkSchemaName } from './schema-name.js';

export interface PrintOptions {
  readonly dialect: 'postgres' | 'sqlite';
  /** The schema of the system tables on Postgres. */
  readonly schema?: string;
  /** The first migration to print; 1 for all. */
  readonly from?: number;
  readonly useListenNotify?: boolean;
  /** Also grants this role what an application needs. Postgres only. */
  readonly role?: string;
}

/** The script for a database at version `from - 1`. */
export function printMigrations(options: PrintOptions): string {
  const { dialect, schema = 'dbos', from = 1, role } = options;
  refuseBadOptions({ ...options, schema, from });
  const [shared, everstep] = tracksOf(dialect);
  const script = dialect === 'postgres' ? postgresScript({ ...options, schema, from }) : sqliteScript(from);
  // Everstep's own migrations are idempotent, so they are always printed.
  const parts = [
    header(dialect, from, latestVersion(shared)),
    ...(dialect === 'postgres' && from === 1 ? [`CREATE SCHEMA IF NOT EXISTS ${quoteIdentifier(schema)};\n`] : []),
    ...[shared, everstep].flatMap((track) => [
      script.versionTable(track),
      ...pendingMigrations(track, track === shared ? from - 1 : 0).map((migration) =>
        script.migration(track, migration),
      ),
    ]),
    ...(role === undefined ? [] : [printGrants({ schema, role })]),
  ];
  return parts.join('\n');
}

/** The grants for an application's role, for the owner of the schema to run. Postgres only. */
export function printGrants({ schema = 'dbos', role }: { readonly schema?: string; readonly role: string }): string {
  refuseBadOptions({ dialect: 'postgres', schema, from: 1, role });
  return `${grantStatements(schema, role).join(';\n')};\n`;
}

interface Script {
  versionTable(track: Track): string;
  migration(track: Track, migration: Migration): string;
}

function postgresScript(options: PrintOptions & { schema: string; from: number }): Script {
  const { schema, from, useListenNotify = true } = options;
  const qualified = (track: Track): string => `${quoteIdentifier(schema)}.${track.versionTable}`;
  return {
    versionTable: (track) => versionTable(qualified(track), 'BIGINT'),
    migration(track, migration) {
      // In an empty database, indexes block no users, so they are built in the transaction.
      const isOnline = from > 1;
      const text = renderMigration(migration, { schema, useListenNotify, isOnline });
      const body = text + setVersion(qualified(track), versionAfter(track, migration));
      return title(migration) + (migration.isOnline && isOnline ? body : `BEGIN;\n${body}COMMIT;\n`);
    },
  };
}

function sqliteScript(from: number): Script {
  // The shared base repeats columns of earlier migrations. The runner checks for them; a script cannot.
  const columns = new Set<string>();
  const isNew = (statement: string): boolean => {
    const added = addedColumn(statement);
    if (!added) return true;
    const name = `${added.table}.${added.column}`;
    return !columns.has(name) && columns.add(name).has(name);
  };
  const newStatements = (migration: Migration): string[] => splitStatements(migration.sql).filter(isNew);
  const [shared] = tracksOf('sqlite');
  // A database that has all of the shared migrations may have the columns of ours as well, or not yet. They are left to
  // the launch then, with the migrations after them.
  const isCurrent = from > latestVersion(shared);
  let isComplete = '';
  const ownStatements = (migration: Migration): string[] =>
    newStatements(migration).filter((statement) => {
      const added = isCurrent ? addedColumn(statement) : undefined;
      if (!added) return true;
      isComplete += ` AND EXISTS (SELECT 1 FROM pragma_table_info('${added.table}') WHERE name = '${added.column}')`;
      return false;
    });
  for (const migration of shared.migrations) if (migration.number < from) newStatements(migration);
  return {
    versionTable: (track) => versionTable(track.versionTable, 'INTEGER'),
    migration(track, migration) {
      const isShared = track.versionTable === shared.versionTable;
      const statements = isShared ? newStatements(migration) : ownStatements(migration);
      const text = statements.map((statement) => `${statement};\n`);
      const version = versionAfter(track, migration);
      const body = text.join('') + setVersion(track.versionTable, version, isShared ? '' : isComplete);
      return `${title(migration)}BEGIN IMMEDIATE;\n${body}COMMIT;\n`;
    },
  };
}

function header(dialect: 'postgres' | 'sqlite', from: number, to: number): string {
  const lines = [`Everstep system database for ${dialect}: migrations ${from} to ${to}.`];
  if (dialect === 'postgres') lines.push('Stop at the first error: psql --set ON_ERROR_STOP=1.');
  if (dialect === 'postgres' && from > 1) {
    lines.push('Indexes are built CONCURRENTLY: do not run this in a single transaction.');
  }
  return lines.map((line) => `-- ${line}\n`).join('');
}

function title(migration: Migration): string {
  return `-- Migration ${migration.number}: ${migration.name}\n`;
}

function versionTable(name: string, type: string): string {
  return (
    `CREATE TABLE IF NOT EXISTS ${name} (version ${type} NOT NULL PRIMARY KEY);\n` +
    `INSERT INTO ${name} (version) SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM ${name});\n`
  );
}

function setVersion(name: string, version: number, condition = ''): string {
  return `UPDATE ${name} SET version = ${version} WHERE version < ${version}${condition};\n`;
}

/** Scripts are read by people and piped through shells, so names that need escaping are rejected here, and only here. */
function refuseBadOptions({ dialect, schema, from, role }: PrintOptions & { schema: string; from: number }): void {
  checkSchemaName(schema);
  if (/["'\\]/.test(schema)) {
    throw new InvalidSchemaNameError(
      `Cannot print migrations for schema name ${JSON.stringify(schema)}: it contains a quote or backslash.`,
    );
  }
  if (role !== undefined && (role === '' || /["'\\]/.test(role))) {
    throw new DBOSDataValidationError(
      `Cannot print grants for role name ${JSON.stringify(role)}: it is empty or contains a quote or backslash.`,
    );
  }
  if (!Number.isInteger(from) || from < 1) {
    throw new DBOSDataValidationError(
      `Cannot print migrations from ${from}: pass the number of a migration, or 1 for all.`,
    );
  }
  if (dialect === 'sqlite' && from > 24 && from < 100) {
    throw new DBOSDataValidationError(
      `Cannot print migrations for SQLite from ${from}: a file between versions 24 and 99 comes from another ` +
        'library. Run `npx everstep migrate` on it, which checks its columns.',
    );
  }
  if (dialect === 'sqlite' && role !== undefined) {
    throw new DBOSDataValidationError('SQLite has no roles: omit the role.');
  }
}
