// Determines which migrations a database needs, and renders them for a schema. Pure: the two runners run them, `print.ts`
// prints them.
//
// A migration file is plain SQL with three marks:
//   {schema}                              the quoted name of the schema (Postgres)
//   -- online                             builds or drops indexes while the tables are in use: its statements run
//                                         one by one outside a transaction, and have no effect if repeated
//   -- if listen_notify … -- end if       only if NOTIFY triggers are enabled
import { quoteIdentifier, type StoredCode } from '../../kernel/sql/sql.js';
import {
  POSTGRES_EVERSTEP_MIGRATIONS,
  POSTGRES_MIGRATIONS,
  SQLITE_EVERSTEP_MIGRATIONS,
  SQLITE_MIGRATIONS,
} from './embedded.js';
import type { Migration, Track } from './migration.js';
import { SCHEMA_NAME_BYTES_MAX } from './schema-name.js';

export interface RenderOptions {
  readonly schema: string;
  readonly useListenNotify: boolean;
  /** False if the tables are not in use yet: then indexes are built in a transaction, which is faster. */
  readonly isOnline: boolean;
  /** What the server refuses to store, and the migration then leaves out. */
  readonly refused?: ReadonlySet<StoredCode>;
}

/** The migration that brings any database below 100 to the schema that all languages share. */
export const SHARED_BASE = 24;
/** The last version that differs between languages; later migrations are the same in all. */
export const OWN_VERSION_MAX = 99;

/** The tables shared with DBOS, then Everstep's own. */
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
 * The version of a database after the migration: its number. The shared base stands for all numbers below 100, so that
 * another library does not apply its own migrations on top.
 */
export function versionAfter(track: Track, migration: Migration): number {
  const isSharedBase = track.versionTable === 'dbos_migrations' && migration.number === SHARED_BASE;
  return isSharedBase ? OWN_VERSION_MAX : migration.number;
}

/**
 * The migrations that a database at this version still needs, in order. A version between 24 and 98 comes from another
 * library and may mean anything, so such a database gets the shared base. A version beyond ours needs nothing.
 */
export function pendingMigrations(track: Track, version: number): readonly Migration[] {
  return track.migrations.filter((migration) => versionAfter(track, migration) > version);
}

export function latestVersion(track: Track): number {
  return track.migrations.at(-1)?.number ?? 0;
}

const NOTIFY_PART = /^-- if listen_notify\n[^]*?^-- end if\n/gm;

/** The text of a migration, with the marks resolved. */
export function renderMigration(migration: Migration, options: RenderOptions): string {
  const schema = quoteIdentifier(options.schema);
  let text = migration.sql.replace(/^-- online\n/m, '');
  if (!options.useListenNotify) text = text.replace(NOTIFY_PART, '');
  text = text.replace(/^-- (?:if listen_notify|end if)\n/gm, '');
  if (!options.isOnline) text = text.replaceAll(' CONCURRENTLY', '');
  const history = quoteIdentifier(historySchema(options.schema));
  const rendered = text
    .replaceAll('$body$', bodyQuote(schema + history))
    .replaceAll("'{schema}", () => `'${schema.replaceAll("'", "''")}`)
    .replaceAll('{schema}', () => schema)
    .replaceAll('{history}', () => history);
  return options.refused?.size ? withoutCode(rendered, options.refused) : rendered;
}

const HISTORY_SUFFIX = '_history';

/** The schema of the views of workflow history. Postgres would cut a long name, perhaps to that of the system tables. */
export function historySchema(schema: string): string {
  let name = schema;
  while (Buffer.byteLength(name + HISTORY_SUFFIX) > SCHEMA_NAME_BYTES_MAX) name = [...name].slice(0, -1).join('');
  return name + HISTORY_SUFFIX;
}

/** A dollar quote that does not occur in the schema's name, which is part of function bodies. */
function bodyQuote(schema: string): string {
  let tag = 'body';
  while (schema.includes(`$${tag}$`)) tag += '_';
  // Doubled: `$$` stands for a dollar sign in the replacement of `replaceAll`.
  return `$$${tag}$$`;
}

/** A comment, string, quoted name, dollar-quoted body, semicolon, or anything else. */
const TOKEN = /--[^\n]*|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$[^]*?\$\1\$|;|[^-'"$;]+|[^]/g;

/** Splits a text into statements, each with the comments before it and without its semicolon. */
export function splitStatements(text: string): string[] {
  const statements: string[] = [];
  let statement = '';
  let hasCode = false;
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === ';' && !isInTrigger(statement)) {
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

/** Whether the text ends within the body of a SQLite trigger, whose statements have semicolons of their own. */
function isInTrigger(text: string): boolean {
  return /^CREATE TRIGGER\b[^]*\bBEGIN\b/m.test(text) && !/\bEND\s*$/.test(text);
}

/** The index that a statement of an online migration builds or drops, if any. */
export function changedIndex(statement: string): { readonly name: string; readonly isWanted: boolean } | undefined {
  const change = /^(CREATE|DROP) (?:UNIQUE )?INDEX CONCURRENTLY IF (?:NOT )?EXISTS (?:"(?:[^"]|"")*"\.)?(\w+)/m.exec(
    statement,
  );
  const [, verb, name] = change ?? [];
  return name === undefined ? undefined : { name, isWanted: verb === 'CREATE' };
}

/** The column that a statement of a SQLite migration adds, if any. */
export function addedColumn(statement: string): { readonly table: string; readonly column: string } | undefined {
  const [, table, column] = /^ALTER TABLE (\w+) ADD COLUMN (\w+)/m.exec(statement) ?? [];
  return table === undefined || column === undefined ? undefined : { table, column };
}

const CODE =
  /^(CREATE(?: OR REPLACE)?|DROP|ALTER|(?:GRANT|REVOKE) [\w ]+ ON) (?:CONSTRAINT )?(TRIGGER|FUNCTION) (?:IF EXISTS )?(?:(?:"(?:[^"]|"")*"|\{schema\})\.)?(\w+)/;
/** Creates the views of the history by a function, and a trigger on one of them. */
const HISTORY_CALL = /^SELECT (?:"(?:[^"]|"")*")\.everstep_create_history\(\)/;

/** What a statement of a Postgres migration stores, drops or calls, if that is code. */
export function codeIn(statement: string): { readonly kind: StoredCode; readonly isCall: boolean } | undefined {
  const text = statement.replace(/^(?:--[^\n]*\n\s*)+/, '');
  if (HISTORY_CALL.test(text)) return { kind: 'functions', isCall: true };
  const [, , kind] = CODE.exec(text) ?? [];
  return kind === undefined ? undefined : { kind: kindOf(kind), isCall: false };
}

function kindOf(word: string): StoredCode {
  return word === 'TRIGGER' ? 'triggers' : 'functions';
}

function withoutCode(text: string, refused: ReadonlySet<StoredCode>): string {
  const isLeftOut = (statement: string): boolean => {
    const code = codeIn(statement);
    return code !== undefined && (code.isCall || refused.has(code.kind));
  };
  const kept = splitStatements(text).filter((statement) => !isLeftOut(statement));
  return kept.map((statement) => `${statement};\n`).join('');
}

/** The names of the code that the Postgres migrations leave behind. */
export function wantedCode(useListenNotify: boolean): Readonly<Record<StoredCode, ReadonlySet<string>>> {
  const wanted = { triggers: new Set<string>(), functions: new Set<string>() };
  for (const { sql } of tracksOf('postgres').flatMap(({ migrations }) => migrations)) {
    const text = useListenNotify ? sql : sql.replace(NOTIFY_PART, '');
    // Statements start a line; what functions do is indented.
    for (const [, verb = '', kind = '', name = ''] of text.matchAll(new RegExp(CODE, 'gm'))) {
      const names = wanted[kindOf(kind)];
      if (verb.startsWith('CREATE')) names.add(name);
      else if (verb === 'DROP') names.delete(name);
    }
  }
  return wanted;
}
