// Drops everything that the migrations created, and nothing else: the schema or file may also have tables of the
// application.
import { DatabaseStatementError } from '../../kernel/errors/errors.js';
import { quoteIdentifier, oneOf, sql } from '../../kernel/sql/sql.js';
import type { Connection, Database } from '../database.js';
import { historySchema, tracksOf } from './plan.js';

const SCHEMA = 'dbos';
/** Other objects depend on the one to drop. */
const DEPENDENT_OBJECTS = '2BP01';

/** Drops the system tables and functions; on Postgres also the schema, if it is then empty. */
export async function dropSystemTables(database: Database, { schema = SCHEMA } = {}): Promise<void> {
  const names = createdNames(database.dialect.name);
  await database.exclusive(async (connection) => {
    if (database.dialect.name === 'sqlite') await dropFromFile(connection, names);
    else await dropFromSchema(connection, schema, names);
  });
}

interface CreatedNames {
  /** SQLite only: on Postgres they go with their tables. */
  readonly views: readonly string[];
  readonly tables: readonly string[];
  readonly functions: readonly string[];
}

function createdNames(dialect: 'postgres' | 'sqlite'): CreatedNames {
  const tracks = tracksOf(dialect);
  const text = tracks.flatMap(({ migrations }) => migrations.map((migration) => migration.sql)).join('\n');
  const named = (pattern: RegExp): string[] => [...new Set([...text.matchAll(pattern)].map((match) => match[1] ?? ''))];
  return {
    views: named(/CREATE VIEW IF NOT EXISTS (\w+)/g),
    tables: [
      ...named(/CREATE TABLE(?: IF NOT EXISTS)? (?:\{schema\}\.)?"?(\w+)/g),
      ...tracks.map(({ versionTable }) => versionTable),
    ],
    functions: named(/CREATE (?:OR REPLACE )?FUNCTION \{schema\}\."?(\w+)/g),
  };
}

async function dropFromFile(connection: Connection, { views, tables }: CreatedNames): Promise<void> {
  // Ignored inside a transaction. It is a setting of the connection, which is closed with the database.
  await connection.script('PRAGMA foreign_keys = OFF');
  const drops = [
    ...views.map((name) => `DROP VIEW IF EXISTS ${name};`),
    ...tables.map((name) => `DROP TABLE IF EXISTS ${name};`),
  ];
  await connection.transaction((tx) => tx.script(drops.join('\n')));
}

async function dropFromSchema(
  connection: Connection,
  schema: string,
  { tables, functions }: CreatedNames,
): Promise<void> {
  const quoted = quoteIdentifier(schema);
  await connection.transaction(async (tx) => {
    await tx.script(
      tables.map((name) => `DROP TABLE IF EXISTS ${quoted}.${quoteIdentifier(name)} CASCADE;`).join('\n'),
    );
    // Functions may be overloaded.
    const found = await tx.run(sql`
      SELECT p.oid::regprocedure::text AS signature
      FROM pg_catalog.pg_proc AS p
      JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
      WHERE n.nspname = ${schema} AND p.proname ${oneOf(functions)}`);
    const drops = found.map((row) => `DROP FUNCTION IF EXISTS ${row['signature'] as string} CASCADE;`);
    if (drops.length > 0) await tx.script(drops.join('\n'));
  });
  await dropIfEmpty(connection, historySchema(schema));
  if (schema !== 'public') await dropIfEmpty(connection, schema);
}

async function dropIfEmpty(connection: Connection, schema: string): Promise<void> {
  try {
    await connection.script(`DROP SCHEMA IF EXISTS ${quoteIdentifier(schema)}`);
  } catch (error) {
    if (error instanceof DatabaseStatementError && error.sqlState === DEPENDENT_OBJECTS) return;
    throw error;
  }
}
