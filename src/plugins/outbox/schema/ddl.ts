// The DDL of the tables, in both dialects.
import { quoteIdentifier } from '../../../kernel/sql/sql.js';
import type { CheckDeclaration, ColumnDeclaration, DialectName, IndexDeclaration, TableDeclaration } from './tables.js';

/** The qualified, quoted name of a table. */
export function qualifiedName({ tableName, schema }: Pick<TableDeclaration, 'tableName' | 'schema'>): string {
  return schema === undefined ? quoteIdentifier(tableName) : `${quoteIdentifier(schema)}.${quoteIdentifier(tableName)}`;
}

/** The statements that create a table with its indexes. */
export function createStatements(table: TableDeclaration, dialect: DialectName): string[] {
  const parts = [
    ...table.columns.map((column) => columnText(column, dialect)),
    ...primaryKeyText(table, dialect),
    ...table.checks.map(checkText),
  ];
  return [
    `CREATE TABLE ${qualifiedName(table)} (\n  ${parts.join(',\n  ')}\n)`,
    ...table.indexes.map((index) => createIndex(table, index)),
  ];
}

export interface DdlOptions {
  readonly dialect?: DialectName;
  /** Adds settings that let autovacuum keep up with a busy outbox. Postgres only. Default: false. */
  readonly autovacuum?: boolean;
}

/** The same as one script. */
export function ddlText(
  tables: readonly TableDeclaration[],
  dialect: DialectName,
  { autovacuum = false }: Pick<DdlOptions, 'autovacuum'> = {},
): string {
  const settings = autovacuum && dialect === 'postgres' ? tables.filter(isBusy).map(autovacuumText) : [];
  return [...tables.flatMap((table) => createStatements(table, dialect)), ...settings]
    .map((statement) => `${statement};\n`)
    .join('\n');
}

/** Rows of the other tables stay, or are few. */
export function isBusy(table: TableDeclaration & { readonly kind?: string }): boolean {
  return table.kind === 'outbox';
}

/**
 * Each message leaves about two dead rows. By default Postgres waits until a fifth of the table is dead, which is never
 * the right share for a table that is nearly empty at one time and full at another.
 */
export const AUTOVACUUM: Readonly<Record<string, string>> = {
  autovacuum_vacuum_scale_factor: '0',
  autovacuum_vacuum_threshold: '1000',
  autovacuum_vacuum_insert_scale_factor: '0',
  autovacuum_vacuum_insert_threshold: '1000',
};

export function autovacuumText(table: TableDeclaration): string {
  const settings = Object.entries(AUTOVACUUM).map(([name, value]) => `${name} = ${value}`);
  return `ALTER TABLE ${qualifiedName(table)} SET (${settings.join(', ')})`;
}

export function columnText(column: ColumnDeclaration, dialect: DialectName): string {
  const { name, isNullable, isIdentity } = column;
  if (isIdentity) {
    return dialect === 'postgres' ? `${name} BIGSERIAL NOT NULL` : `${name} INTEGER PRIMARY KEY AUTOINCREMENT`;
  }
  const initial = column.default ? ` DEFAULT ${column.default[dialect]}` : '';
  return `${quoteIfReserved(name)} ${column.type[dialect]}${initial}${isNullable ? '' : ' NOT NULL'}`;
}

export function checkText({ name, predicate }: CheckDeclaration): string {
  return `CONSTRAINT ${quoteIdentifier(name)} CHECK (${predicate})`;
}

export function createIndex(table: TableDeclaration, { name, columns, isUnique, predicate }: IndexDeclaration): string {
  const where = predicate === undefined ? '' : ` WHERE ${predicate}`;
  return `CREATE ${isUnique ? 'UNIQUE ' : ''}INDEX ${quoteIdentifier(name)} ON ${qualifiedName(table)} (${columns.join(', ')})${where}`;
}

function primaryKeyText({ primaryKey, columns }: TableDeclaration, dialect: DialectName): string[] {
  // In SQLite only the column itself can be numbered by the database.
  const isInColumn = dialect === 'sqlite' && columns.some(({ isIdentity }) => isIdentity);
  return isInColumn ? [] : [`PRIMARY KEY (${primaryKey.map(quoteIfReserved).join(', ')})`];
}

/** `key` is a keyword in SQLite. */
function quoteIfReserved(name: string): string {
  return name === 'key' ? quoteIdentifier(name) : name;
}
