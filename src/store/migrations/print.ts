// The migrations as one SQL script, for an administrator who runs them by hand:
//
//   npx everstep schema --print-migrations all | psql --set ON_ERROR_STOP=1 mydatabase
import { DBOSDataValidationError, InvalidSchemaNameError } from '../../model/errors/errors.js';
import { quoteIdentifier } from '../../sql/sql.js';
import { grantStatements } from './grants.js';
import type { Migration, Track } from './migration.js';
import {
  addedColumn,
  checkSchemaName,
  latestVersion,
  pendingMigrations,
  renderMigration,
  splitStatements,
  tracksOf,
  versionAfter,
} from './plan.js';

export interface PrintOptions {
  readonly dialect: 'postgres' | 'sqlite';
  /** The schema of the system tables on Postgres. */
  readonly schema?: string;
  /** The number of the first migration to print; 1 prints all. */
  readonly from?: number;
  readonly useListenNotify?: boolean;
  /** Also grants this role what an application needs. On Postgres only. */
  readonly role?: string;
}

/** The script. It is meant for a database at version `from - 1`. */
export function printMigrations(options: PrintOptions): string {
  const { dialect, schema = 'dbos', from = 1, role } = options;
  refuseBadOptions({ ...options, schema, from });
  const [shared, everstep] = tracksOf(dialect);
  const script = dialect === 'postgres' ? postgresScript({ ...options, schema, from }) : sqliteScript(from);
  // Everstep's own migrations do nothing where their work is done, so they are always printed.
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

/** The rights of an application's role, for the owner of the schema to run. On Postgres only. */
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
      // An empty database has no users who would be held up, so its indexes are built in the transaction.
      const isOnline = from > 1;
      const text = renderMigration(migration, { schema, useListenNotify, isOnline });
      const body = text + setVersion(qualified(track), versionAfter(track, migration));
      return title(migration) + (migration.isOnline && isOnline ? body : `BEGIN;\n${body}COMMIT;\n`);
    },
  };
}

function sqliteScript(from: number): Script {
  // The shared base repeats what an earlier migration has added; the runner would look, a script cannot.
  const columns = new Set<string>();
  const isNew = (statement: string): boolean => {
    const added = addedColumn(statement);
    if (!added) return true;
    const name = `${added.table}.${added.column}`;
    return !columns.has(name) && columns.add(name).has(name);
  };
  const newStatements = (migration: Migration): string[] => splitStatements(migration.sql).filter(isNew);
  for (const migration of tracksOf('sqlite')[0].migrations) if (migration.number < from) newStatements(migration);
  return {
    versionTable: (track) => versionTable(track.versionTable, 'INTEGER'),
    migration(track, migration) {
      const text = newStatements(migration).map((statement) => `${statement};\n`);
      const body = text.join('') + setVersion(track.versionTable, versionAfter(track, migration));
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

function setVersion(name: string, version: number): string {
  return `UPDATE ${name} SET version = ${version} WHERE version < ${version};\n`;
}

/** A script is read by people and piped by shells: names that need escaping are refused here, and only here. */
function refuseBadOptions({ dialect, schema, from, role }: PrintOptions & { schema: string; from: number }): void {
  checkSchemaName(schema);
  if (/["'\\]/.test(schema)) {
    throw new InvalidSchemaNameError(
      `The schema name ${JSON.stringify(schema)} cannot be printed: it contains a quote.`,
    );
  }
  if (role !== undefined && (role === '' || /["'\\]/.test(role))) {
    throw new DBOSDataValidationError(
      `The role name ${JSON.stringify(role)} cannot be printed: it is empty or contains a quote.`,
    );
  }
  if (!Number.isInteger(from) || from < 1) {
    throw new DBOSDataValidationError(
      `Migrations cannot be printed from ${from}: give the number of one, or 1 for all.`,
    );
  }
  if (dialect === 'sqlite' && from > 24 && from < 100) {
    throw new DBOSDataValidationError(
      `Migrations for SQLite cannot be printed from ${from}: a file between versions 24 and 99 was left by another ` +
        'library. Run `npx everstep migrate` on it, which looks at what it has.',
    );
  }
  if (dialect === 'sqlite' && role !== undefined) {
    throw new DBOSDataValidationError('SQLite has no roles: leave out the role.');
  }
}
