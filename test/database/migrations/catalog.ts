// Reads what a database really has, in a form that both dialects share: one line a column, key and index.
import { type Sql, sql } from '../../../src/kernel/sql/sql.js';
import type { Database, Row } from '../../../src/database/database.js';

export interface Catalog {
  /** `table.column type [not null] [default]` */
  readonly columns: string[];
  /** `table (columns)` of the primary keys. */
  readonly primaryKeys: string[];
  /** `table (columns)` of the UNIQUE constraints. */
  readonly uniqueKeys: string[];
  /** `table.column -> table.column on update … on delete …` */
  readonly foreignKeys: string[];
  /** Indexes that belong to no constraint, by their definition. */
  readonly indexes: string[];
  /** Postgres only. */
  readonly triggers: string[];
  readonly functions: string[];
}

export function readCatalog(database: Database, schema = 'dbos'): Promise<Catalog> {
  return database.dialect.name === 'postgres' ? readPostgres(database, schema) : readSqlite(database);
}

/** The one row of a version table, or several if something went wrong. */
export async function readVersionRows(database: Database, schema = 'dbos'): Promise<number[][]> {
  const prefix = database.dialect.name === 'postgres' ? `"${schema.replaceAll('"', '""')}".` : '';
  return Promise.all(
    ['dbos_migrations', 'everstep_migrations'].map(async (name) => {
      const rows = await database.read(raw(`SELECT version FROM ${prefix}${name} ORDER BY version`));
      return rows.map((row) => Number(row['version']));
    }),
  );
}

/** A statement from plain text, for tests only. */
export function raw(text: string): Sql {
  return sql([text] as unknown as TemplateStringsArray);
}

async function lines(database: Database, statement: Sql): Promise<string[]> {
  return (await database.read(statement)).map((row) => String(row['line'])).sort();
}

async function readPostgres(database: Database, schema: string): Promise<Catalog> {
  const withoutSchema = (line: string): string =>
    line.replaceAll(`"${schema.replaceAll('"', '""')}".`, '').replaceAll(`${schema}.`, '');
  const read = async (statement: Sql): Promise<string[]> =>
    (await lines(database, statement)).map(withoutSchema).sort();
  return {
    columns: await read(sql`
      SELECT c.relname || '.' || a.attname || ' '
        || replace(replace(format_type(a.atttypid, a.atttypmod), 'character varying', 'varchar'), 'double precision', 'real')
        || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
        || CASE WHEN a.atthasdef THEN ' default' ELSE '' END AS line
      FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = ${schema} AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped`),
    primaryKeys: await read(constraints(schema, 'p')),
    uniqueKeys: await read(constraints(schema, 'u')),
    foreignKeys: await read(sql`
      SELECT c.relname || ': ' || lower(pg_get_constraintdef(k.oid)) AS line
      FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = k.connamespace
      WHERE n.nspname = ${schema} AND k.contype = 'f'`),
    indexes: await read(sql`
      SELECT CASE WHEN i.indisvalid THEN '' ELSE 'INVALID ' END || regexp_replace(pg_get_indexdef(i.indexrelid), '\\s+', ' ', 'g') AS line
      FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = ${schema} AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid)`),
    triggers: await read(sql`
      SELECT pg_get_triggerdef(t.oid) AS line
      FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = ${schema} AND NOT t.tgisinternal`),
    functions: await read(sql`
      SELECT p.proname || '(' || pg_get_function_arguments(p.oid) || ') ' || array_to_string(p.proconfig, ';') AS line
      FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
      WHERE n.nspname = ${schema}`),
  };
}

function constraints(schema: string, type: string): Sql {
  return sql`
    SELECT c.relname || ' ' || substring(pg_get_constraintdef(k.oid) FROM '\\(.*\\)') AS line
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = k.connamespace
    WHERE n.nspname = ${schema} AND k.contype = ${type}`;
}

async function readSqlite(database: Database): Promise<Catalog> {
  const tables = await lines(
    database,
    sql`SELECT name AS line FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`,
  );
  const each = async (describe: (table: string) => Promise<string[]>): Promise<string[]> =>
    (await Promise.all(tables.map(describe))).flat().sort();
  const keys = async (table: string, origin: string): Promise<string[]> => {
    const indexes = await database.read(sql`SELECT name FROM pragma_index_list(${table}) WHERE origin = ${origin}`);
    return Promise.all(
      indexes.map(async ({ name }) => {
        const columns = await database.read(sql`SELECT name FROM pragma_index_info(${String(name)}) ORDER BY seqno`);
        return `${table} (${columns.map((column) => quoted(String(column['name']))).join(', ')})`;
      }),
    );
  };
  return {
    columns: await each(async (table) =>
      (await database.read(sql`SELECT * FROM pragma_table_info(${table})`)).map((row) => sqliteColumn(table, row)),
    ),
    primaryKeys: await each(async (table) => [
      ...(await keys(table, 'pk')),
      // A table whose key is an integer has no index for it.
      ...(table.endsWith('_migrations') ? [`${table} (version)`] : []),
    ]),
    uniqueKeys: await each((table) => keys(table, 'u')),
    foreignKeys: await each(async (table) =>
      (await database.read(sql`SELECT * FROM pragma_foreign_key_list(${table})`)).map(
        (row) =>
          `${table}: foreign key (${row['from'] as string}) references ${row['table'] as string}(${row['to'] as string}) ` +
          `on update ${row['on_update'] as string} on delete ${row['on_delete'] as string}`.toLowerCase(),
      ),
    ),
    indexes: (
      await lines(database, sql`SELECT sql AS line FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL`)
    ).map((line) => line.replaceAll(/\s+/g, ' ')),
    triggers: await lines(database, sql`SELECT name AS line FROM sqlite_master WHERE type IN ('trigger', 'view')`),
    functions: [],
  };
}

function sqliteColumn(table: string, row: Row): string {
  const type = String(row['type']).toLowerCase().replace(', ', ',');
  const suffix = `${row['notnull'] ? ' not null' : ''}${row['dflt_value'] === null ? '' : ' default'}`;
  return `${table}.${String(row['name'])} ${type}${suffix}`;
}

function quoted(name: string): string {
  return name === 'offset' ? '"offset"' : name;
}
