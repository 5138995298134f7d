// Reads what there is of a table from the catalogue of the database.
import type { Transaction } from '../database.js';
import { sql } from '../../../kernel/sql/sql.js';
import type { DialectName, TableDeclaration } from '../schema/tables.js';
import { text } from '../tokens.js';

export interface LiveTable {
  readonly columns: ReadonlyMap<string, LiveColumn>;
  readonly primaryKey: readonly string[];
  readonly indexes: ReadonlyMap<string, LiveIndex>;
  /** The predicates of all CHECK constraints, by name. */
  readonly checks: ReadonlyMap<string, string>;
  readonly isPartitioned: boolean;
}

export interface LiveColumn {
  readonly type: string;
  readonly isNullable: boolean;
  readonly default: string | undefined;
}

export interface LiveIndex {
  readonly columns: readonly string[];
  readonly isUnique: boolean;
  readonly predicate: string | undefined;
  readonly isValid: boolean;
  /** The statement that created it. SQLite only. */
  readonly definition?: string;
}

export function readTable(
  tx: Transaction,
  table: TableDeclaration,
  dialect: DialectName,
): Promise<LiveTable | undefined> {
  return dialect === 'postgres' ? readPostgres(tx, table) : readSqlite(tx, table);
}

/** The OID of the table, by its schema or the search path. */
export function regclass({ tableName, schema }: TableDeclaration) {
  return schema === undefined
    ? sql`to_regclass(quote_ident(${text(tableName)}))`
    : sql`to_regclass(quote_ident(${text(schema)}) || '.' || quote_ident(${text(tableName)}))`;
}

async function readPostgres(tx: Transaction, table: TableDeclaration): Promise<LiveTable | undefined> {
  const [found] = await tx.run(sql`
    SELECT c.oid::text AS oid, c.relkind::text AS kind
    FROM pg_catalog.pg_class AS c
    WHERE c.oid = ${regclass(table)}`);
  if (!found) return undefined;
  const oid = sql`${text(String(found['oid']))}::oid`;
  const columns = await tx.run(sql`
    SELECT a.attname::text AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS required,
      pg_get_expr(d.adbin, d.adrelid) AS initial
    FROM pg_catalog.pg_attribute AS a
    LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE a.attrelid = ${oid} AND a.attnum > 0 AND NOT a.attisdropped`);
  const indexes = await tx.run(sql`
    SELECT c.relname::text AS name, i.indisunique AS is_unique, i.indisvalid AS is_valid, i.indisprimary AS is_primary,
      pg_get_expr(i.indpred, i.indrelid) AS predicate,
      (SELECT json_agg(pg_get_indexdef(i.indexrelid, n, false)
          || CASE WHEN (i.indoption[n - 1] & 1) = 1 THEN ' DESC' ELSE '' END ORDER BY n)::text
        FROM generate_series(1, i.indnkeyatts) AS n) AS columns
    FROM pg_catalog.pg_index AS i
    JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
    WHERE i.indrelid = ${oid}`);
  const checks = await tx.run(sql`
    SELECT k.conname::text AS name, pg_get_expr(k.conbin, k.conrelid) AS predicate
    FROM pg_catalog.pg_constraint AS k
    WHERE k.conrelid = ${oid} AND k.contype = 'c' AND k.convalidated`);
  const listOf = (value: unknown): string[] => (typeof value === 'string' ? (JSON.parse(value) as string[]) : []);
  const primary = indexes.find((row) => row['is_primary'] === true);
  return {
    isPartitioned: found['kind'] === 'p',
    columns: new Map(
      columns.map((row) => [
        String(row['name']),
        {
          type: String(row['type']),
          isNullable: row['required'] !== true,
          default: (row['initial'] as string | null) ?? undefined,
        },
      ]),
    ),
    primaryKey: listOf(primary?.['columns']),
    indexes: new Map(
      indexes.map((row) => [
        String(row['name']),
        {
          columns: listOf(row['columns']),
          isUnique: row['is_unique'] === true,
          predicate: (row['predicate'] as string | null) ?? undefined,
          isValid: row['is_valid'] === true,
        },
      ]),
    ),
    checks: new Map(checks.map((row) => [String(row['name']), String(row['predicate'])])),
  };
}

async function readSqlite(tx: Transaction, { tableName }: TableDeclaration): Promise<LiveTable | undefined> {
  const [found] = await tx.run(sql`SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ${tableName}`);
  if (!found) return undefined;
  const columns = await tx.run(sql`SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(${tableName})`);
  const indexes = await tx.run(sql`
    SELECT i.name, i."unique" AS is_unique, m.sql
    FROM pragma_index_list(${tableName}) AS i
    JOIN sqlite_master AS m ON m.name = i.name
    WHERE i.origin = 'c'`);
  const live = new Map<string, LiveIndex>();
  for (const row of indexes) {
    const name = String(row['name']);
    const parts = await tx.run(sql`SELECT name, "desc" FROM pragma_index_xinfo(${name}) WHERE key = 1 ORDER BY seqno`);
    live.set(name, {
      columns: parts.map((part) => `${String(part['name'])}${Number(part['desc']) === 1 ? ' DESC' : ''}`),
      isUnique: Number(row['is_unique']) === 1,
      predicate: /\bWHERE\b([\s\S]*)$/i.exec(String(row['sql']))?.[1]?.trim(),
      isValid: true,
      definition: String(row['sql']),
    });
  }
  const keys = columns.filter((row) => Number(row['pk']) > 0);
  return {
    isPartitioned: false,
    columns: new Map(
      columns.map((row) => [
        String(row['name']),
        {
          type: String(row['type']),
          isNullable: Number(row['notnull']) === 0 && Number(row['pk']) === 0,
          default: (row['dflt_value'] as string | null) ?? undefined,
        },
      ]),
    ),
    primaryKey: keys.toSorted((a, b) => Number(a['pk']) - Number(b['pk'])).map((row) => String(row['name'])),
    indexes: live,
    checks: new Map(checksOf(String(found['sql'])).map((predicate, index) => [`check ${index + 1}`, predicate])),
  };
}

/** SQLite keeps a CHECK in the text of the table only. */
function checksOf(definition: string): string[] {
  const found: string[] = [];
  for (const match of definition.matchAll(/\bCHECK\s*\(/gi)) {
    let depth = 1;
    let at = match.index + match[0].length;
    const from = at;
    for (; at < definition.length && depth > 0; at += 1) {
      if (definition[at] === '(') depth += 1;
      if (definition[at] === ')') depth -= 1;
    }
    found.push(definition.slice(from, at - 1));
  }
  return found;
}
