// Which migrations a database needs, and what their text is for a given schema. Pure: running them is left to the
// two runners, printing them to `print.ts`.
//
// A migration file is plain SQL with three marks of ours:
//   {schema}                              the quoted name of the schema (Postgres)
//   -- online                             builds or drops indexes while the tables are in use: its statements run
//                                         one by one outside a transaction and do nothing where their work is done
//   -- if listen_notify … -- end if       only where NOTIFY triggers are wanted
import { InvalidSchemaNameError } from '../../model/errors/errors.js';
import { quoteIdentifier } from '../../sql/sql.js';
import {
  POSTGRES_EVERSTEP_MIGRATIONS,
  POSTGRES_MIGRATIONS,
  SQLITE_EVERSTEP_MIGRATIONS,
  SQLITE_MIGRATIONS,
} from './embedded.js';
import type { Migration, Track } from './migration.js';

export interface RenderOptions {
  readonly schema: string;
  readonly useListenNotify: boolean;
  /** False where nobody uses the tables yet: an index can then be built in a transaction, which is faster. */
  readonly isOnline: boolean;
}

/** Brings any database below 100 to the state that all languages share. */
export const SHARED_BASE = 24;
/** The last version of each language's own; from the next one on all languages have the same migrations. */
const OWN_VERSION_MAX = 99;
/** Postgres cuts longer names off. */
const SCHEMA_NAME_BYTES_MAX = 63;

/** The tables shared with DBOS, then those that only Everstep has. */
export function tracksOf(dialect: 'postgres' | 'sqlite'): readonly [shared: Track, everstep: Track] {
  return dialect === 'postgres'
    ? [
        { versionTable: 'dbos_migrations', migrations: POSTGRES_MIGRATIONS },
        { versionTable: 'everstep_migrations', migrations: POSTGRES_EVERSTEP_MIGRATIONS },
      ]
    : [
        { versionTable: 'dbos_migrations', migrations: SQLITE_MIGRATIONS },
        { versionTable: 'everstep_migrations', migrations: SQLITE_EVERSTEP_MIGRATIONS },
      ];
}

/**
 * The version that a database has when the migration is done: its number. The shared base counts for all numbers
 * below 100, so that another library that opens the database next does not apply its own on top.
 */
export function versionAfter(track: Track, migration: Migration): number {
  const isSharedBase = track.versionTable === 'dbos_migrations' && migration.number === SHARED_BASE;
  return isSharedBase ? OWN_VERSION_MAX : migration.number;
}

/**
 * What a database at this version still needs, in order. A version between 24 and 98 was left by another library and
 * may mean anything; such a database gets the shared base. A version beyond ours needs nothing.
 */
export function pendingMigrations(track: Track, version: number): readonly Migration[] {
  return track.migrations.filter((migration) => versionAfter(track, migration) > version);
}

export function latestVersion(track: Track): number {
  return track.migrations.at(-1)?.number ?? 0;
}

/** The text of a migration without our marks. */
export function renderMigration(migration: Migration, options: RenderOptions): string {
  const schema = quoteIdentifier(options.schema);
  let text = migration.sql.replace(/^-- online\n/m, '');
  if (!options.useListenNotify) text = text.replace(/^-- if listen_notify\n[^]*?^-- end if\n/gm, '');
  text = text.replace(/^-- (?:if listen_notify|end if)\n/gm, '');
  if (!options.isOnline) text = text.replaceAll(' CONCURRENTLY', '');
  return text.replaceAll('$body$', bodyQuote(schema)).replaceAll('{schema}', () => schema);
}

/** A dollar quote that does not occur in the schema's name, which stands inside function bodies. */
function bodyQuote(schema: string): string {
  let tag = 'body';
  while (schema.includes(`$${tag}$`)) tag += '_';
  // Doubled, because `replaceAll` reads a dollar sign in its replacement as a mark of its own.
  return `$$${tag}$$`;
}

/** A comment, a string, a quoted name, a dollar-quoted body, a semicolon, or anything else. */
const TOKEN = /--[^\n]*|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$[^]*?\$\1\$|;|[^-'"$;]+|[^]/g;

/** The statements of a text, each with the comments before it and without its semicolon. */
export function splitStatements(text: string): string[] {
  const statements: string[] = [];
  let statement = '';
  let hasCode = false;
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === ';') {
      if (hasCode) statements.push(statement.trim());
      statement = '';
      hasCode = false;
    } else {
      statement += token;
      hasCode ||= !token.startsWith('--') && token.trim() !== '';
    }
  }
  if (hasCode) statements.push(statement.trim());
  return statements;
}

/** The index that a statement of an online migration builds or drops, where it does. */
export function changedIndex(statement: string): { readonly name: string; readonly isWanted: boolean } | undefined {
  const change = /^(CREATE|DROP) (?:UNIQUE )?INDEX CONCURRENTLY IF (?:NOT )?EXISTS (?:"(?:[^"]|"")*"\.)?(\w+)/m.exec(
    statement,
  );
  const [, verb, name] = change ?? [];
  return name === undefined ? undefined : { name, isWanted: verb === 'CREATE' };
}

/** The table and column that a statement of a SQLite migration adds, where it does. */
export function addedColumn(statement: string): { readonly table: string; readonly column: string } | undefined {
  const [, table, column] = /^ALTER TABLE (\w+) ADD COLUMN (\w+)/m.exec(statement) ?? [];
  return table === undefined || column === undefined ? undefined : { table, column };
}

/** Refuses a name that Postgres would refuse or shorten. Any other name is fine, whatever its characters. */
export function checkSchemaName(schema: string): void {
  if (schema !== '' && !schema.includes('\0') && Buffer.byteLength(schema) <= SCHEMA_NAME_BYTES_MAX) return;
  throw new InvalidSchemaNameError(
    `The schema name ${JSON.stringify(schema)} cannot be used: give one of 1 to ${SCHEMA_NAME_BYTES_MAX} bytes without NUL.`,
  );
}
