// Rebuilds a table on SQLite, which cannot change columns and constraints in place: a new table with the declared columns
// takes the rows over, and then the name.
import { quoteIdentifier } from '../../../kernel/sql/sql.js';
import { createIndex, createStatements, qualifiedName } from '../schema/ddl.js';
import type { ColumnDeclaration, TableDeclaration } from '../schema/tables.js';
import type { LiveTable } from './catalogue.js';

/** The script. Columns and indexes of your own stay. It can be run again. */
export function rebuild(table: TableDeclaration, live: LiveTable): string {
  const known = new Set(table.columns.map(({ name }) => name));
  const own = [...live.columns].filter(([name]) => !known.has(name));
  const temporary = {
    ...table,
    tableName: `${table.tableName}_rebuilt`,
    columns: [...table.columns, ...own.map(ownColumn)],
  };
  const [name, temporaryName] = [qualifiedName(table), qualifiedName(temporary)];
  const copied = [...table.columns.filter((column) => live.columns.has(column.name)), ...own.map(ownColumn)];
  const indexNames = new Set(table.indexes.map((index) => index.name));
  const ownIndexes = [...live.indexes].flatMap(([index, { definition }]) =>
    definition !== undefined && !indexNames.has(index) ? [definition] : [],
  );
  return [
    `DROP TABLE IF EXISTS ${temporaryName}`,
    createStatements(temporary, 'sqlite')[0],
    `INSERT INTO ${temporaryName} (${copied.map(quoted).join(', ')}) SELECT ${copied.map(sourceOf).join(', ')} FROM ${name}`,
    ...(table.columns.some(({ isIdentity }) => isIdentity) ? sequence(table, temporary) : []),
    `DROP TABLE ${name}`,
    `ALTER TABLE ${temporaryName} RENAME TO ${quoteIdentifier(table.tableName)}`,
    ...table.indexes.map((index) => createIndex(table, index)),
    ...ownIndexes,
  ].join(';\n');
}

/** One that had to be set may stay empty: we do not know it. */
function ownColumn([name, { type, default: initial }]: [
  string,
  { type: string; default: string | undefined },
]): ColumnDeclaration {
  const both = (text: string) => ({ postgres: text, sqlite: text });
  return {
    name: quoteIdentifier(name),
    type: both(type),
    isNullable: true,
    ...(initial !== undefined && { default: both(`(${initial})`) }),
  };
}

/** Names of columns of your own are quoted already. */
function quoted({ name }: ColumnDeclaration): string {
  return name.startsWith('"') ? name : quoteIdentifier(name);
}

/** What is missing in a column that must be set gets the default. */
function sourceOf(column: ColumnDeclaration): string {
  const initial = column.default?.sqlite;
  return column.isNullable || initial === undefined ? quoted(column) : `COALESCE(${quoted(column)}, ${initial})`;
}

/** No ID is given twice, even if the rows with the highest are gone. */
function sequence(table: TableDeclaration, temporary: TableDeclaration): string[] {
  const [from, to] = [table, temporary].map(({ tableName }) => `'${tableName.replaceAll("'", "''")}'`);
  return [
    `DELETE FROM sqlite_sequence WHERE name = ${to} AND EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ${from})`,
    `INSERT INTO sqlite_sequence (name, seq) SELECT ${to}, seq FROM sqlite_sequence WHERE name = ${from}`,
  ];
}
