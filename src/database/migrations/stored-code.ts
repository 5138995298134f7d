// The triggers and functions of the system database. Some servers refuse to store them, and a role may lack the right to: then
// migrations create the tables alone, and engines do without. Later launches add what is missing, which no migration would
// do, because the version is current.
import type { DLogger } from '../../kernel/base/log.js';
import { DatabaseAccessError, DatabaseStatementError } from '../../kernel/errors/errors.js';
import { quoteIdentifier, sql, type StoredCode } from '../../kernel/sql/sql.js';
import type { Connection, Database } from '../database.js';
import { lacksAdvisoryLocks } from '../postgres/postgres-errors.js';
import { stateOf } from './migration-run.js';
import { marked } from './other-library.js';
import { codeIn, latestVersion, renderMigration, splitStatements, tracksOf, wantedCode } from './plan.js';
import type { Versions } from './versions.js';

/** What Everstep does without it. */
export const WITHOUT_CODE: Readonly<Record<StoredCode, string>> = {
  triggers:
    'What other programs write is looked for every second while they are connected. Workflows that wait for a message, ' +
    'an event or an outcome are not parked. The history lacks cancellations, resumptions, lost attempts and forks, and ' +
    'is not protected from changes.',
  functions:
    'Programs cannot enqueue workflows or send messages by SQL functions, and there are no views of the history.',
};

/** What the catalog has of the functions and triggers in the schema. */
export interface FoundCode {
  readonly triggers: ReadonlySet<string>;
  /** Their bodies by name. */
  readonly functions: ReadonlyMap<string, string>;
}

/** The same for all processes. */
const LOCK = 1234567892;
/** A syntax error, something unknown, a missing privilege, or a feature that is not supported. */
const REFUSED = /^(42|0A)/;

export async function findCode(database: Pick<Database, 'read'>, schema: string): Promise<FoundCode> {
  const rows = await database.read(sql`
    SELECT 1 AS is_function, p.proname AS name, p.prosrc AS body
    FROM pg_catalog.pg_proc AS p
    JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
    WHERE n.nspname = ${schema}
    UNION ALL
    SELECT 0, t.tgname, NULL
    FROM pg_catalog.pg_trigger AS t
    JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = ${schema} AND NOT t.tgisinternal`);
  const functions = rows.filter((row) => row['is_function'] === 1);
  return {
    triggers: new Set(rows.filter((row) => row['is_function'] === 0).map((row) => row['name'] as string)),
    functions: new Map(functions.map((row) => [row['name'] as string, row['body'] as string])),
  };
}

/** The kinds of which some are missing. */
export function missingCode(found: FoundCode, useListenNotify: boolean): ReadonlySet<StoredCode> {
  const wanted = wantedCode(useListenNotify);
  const kinds = ['triggers', 'functions'] as const;
  return new Set(kinds.filter((kind) => [...wanted[kind]].some((name) => !found[kind].has(name))));
}

/** Tries it in a transaction that is rolled back. A role that may create nothing gets the error of the first migration. */
export async function findRefusedCode(connection: Connection, schema: string): Promise<ReadonlySet<StoredCode>> {
  const target = quoteIdentifier(schema);
  const found = await connection.run(sql`SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = ${schema}`);
  const tables = [
    ...(found.length > 0 ? [] : [`CREATE SCHEMA IF NOT EXISTS ${target}`]),
    `CREATE TABLE ${target}.everstep_probe (one INT)`,
  ];
  const functions = `CREATE FUNCTION ${target}.everstep_probe() RETURNS TRIGGER LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`;
  const triggers =
    `CREATE TRIGGER everstep_probe AFTER INSERT ON ${target}.everstep_probe ` +
    `FOR EACH STATEMENT EXECUTE FUNCTION ${target}.everstep_probe()`;
  if (await isAccepted(connection, [...tables, functions, triggers])) return new Set();
  if (!(await isAccepted(connection, tables))) return new Set();
  return new Set((await isAccepted(connection, [...tables, functions])) ? ['triggers'] : ['triggers', 'functions']);
}

class RolledBack extends Error {}

async function isAccepted(connection: Connection, statements: readonly string[]): Promise<boolean> {
  try {
    await connection.transaction(async (tx) => {
      for (const statement of statements) await tx.script(marked(statement));
      throw new RolledBack();
    });
  } catch (error) {
    // Other failures say nothing about it, and the next statement reports them.
    return error instanceof RolledBack || !REFUSED.test(stateOf(error));
  }
  return true;
}

export interface CodeOptions {
  readonly schema: string;
  readonly versions: Versions;
  readonly useListenNotify: boolean;
  readonly logger: DLogger;
}

/** Adds what is missing, unless a later version may have dropped it. Returns what still is. */
export async function addMissingCode(
  database: Database,
  found: FoundCode,
  { schema, versions, useListenNotify, logger }: CodeOptions,
): Promise<ReadonlySet<StoredCode>> {
  const isAhead = tracksOf('postgres').some((track, index) => (versions[index] ?? 0) > latestVersion(track));
  const missing = missingCode(found, useListenNotify);
  if (isAhead || missing.size === 0) return missing;
  const script = codeScript(schema, useListenNotify);
  const add = ({ isLocked }: { readonly isLocked: boolean }): Promise<void> =>
    database.exclusive((connection) =>
      connection.transaction(async (tx) => {
        if (isLocked) await tx.run(sql`SELECT pg_advisory_xact_lock(${LOCK})`);
        await tx.script(marked(script));
      }),
    );
  try {
    await add({ isLocked: true }).catch((error: unknown) => {
      if (!lacksAdvisoryLocks(error)) throw error;
      return add({ isLocked: false });
    });
    return new Set();
  } catch (error) {
    if (!(error instanceof DatabaseAccessError || error instanceof DatabaseStatementError)) throw error;
    for (const kind of missing) {
      logger.warn(
        `The server lacks ${kind} of the system tables, and refuses them: ${error.message} ${WITHOUT_CODE[kind]}`,
      );
    }
    return missing;
  }
}

/** What migrations do to triggers and functions, in their order. The lock on a busy table is not waited for. */
function codeScript(schema: string, useListenNotify: boolean): string {
  const statements = tracksOf('postgres')
    .flatMap(({ migrations }) => migrations)
    .map((migration) => renderMigration(migration, { schema, useListenNotify, isOnline: true }))
    .flatMap(splitStatements);
  const changes = statements.filter((statement) => codeIn(statement)?.isCall === false);
  const calls = statements.filter((statement) => codeIn(statement)?.isCall);
  return [`SET LOCAL lock_timeout = '3s'`, ...changes.map(replacing), ...calls.slice(-1)]
    .map((statement) => `${statement};\n`)
    .join('');
}

function replacing(statement: string): string {
  return statement.replace(/^CREATE TRIGGER /m, 'CREATE OR REPLACE TRIGGER ');
}
