// Compares a live table with its declaration. Columns and indexes that it does not know are left alone, unless they keep
// messages from being inserted.
import { quoteIdentifier } from '../../../kernel/sql/sql.js';
import { columnText, createIndex, createStatements, qualifiedName } from '../schema/ddl.js';
import type { ColumnDeclaration, DialectName, IndexDeclaration, TableDeclaration } from '../schema/tables.js';
import type { LiveColumn, LiveIndex, LiveTable } from './catalogue.js';
import { type Finding, normalized } from './finding.js';
import { rebuild } from './rebuilding.js';

/** Names of types as the catalogue of Postgres spells them. */
const POSTGRES_TYPES: Readonly<Record<string, readonly string[]>> = {
  BIGINT: ['bigint'],
  INTEGER: ['integer'],
  SMALLINT: ['smallint'],
  BYTEA: ['bytea'],
  JSONB: ['jsonb'],
  UUID: ['uuid'],
  TIMESTAMPTZ: ['timestamp with time zone'],
  // Both hold any text.
  VARCHAR: ['character varying', 'text'],
  'VARCHAR(16)': ['character varying(16)'],
  'VARCHAR(64)': ['character varying(64)'],
  'VARCHAR(255)': ['character varying(255)'],
};

export function compare(table: TableDeclaration, live: LiveTable | undefined, dialect: DialectName): Finding[] {
  const name = qualifiedName(table);
  if (!live) {
    const fixSql = createStatements(table, dialect).join(';\n');
    return [error('missing_table', name, { expected: 'the table', actual: 'nothing', fixSql })];
  }
  const findings = [
    ...table.columns.flatMap((column) =>
      compareColumn(table, column, { live: live.columns.get(column.name), dialect }),
    ),
    ...foreignColumns(table, live, dialect),
    ...comparePrimaryKey(table, live, dialect),
    ...table.indexes.flatMap((index) => compareIndex(table, index, { live, dialect })),
    ...compareChecks(table, live, dialect),
  ];
  if (dialect === 'postgres' || findings.every(({ fixSql }) => fixSql !== REBUILD)) return findings;
  // A rebuilt table has all its columns and indexes, so one script clears all findings.
  const fixSql = rebuild(table, live);
  return findings.map((finding) => ({ ...finding, fixSql }));
}

function error(code: Finding['code'], object: string, rest: Pick<Finding, 'expected' | 'actual' | 'fixSql'>): Finding {
  return { code, severity: 'error', object, ...rest };
}

function compareColumn(
  table: TableDeclaration,
  column: ColumnDeclaration,
  { live, dialect }: { readonly live: LiveColumn | undefined; readonly dialect: DialectName },
): Finding[] {
  const object = `${qualifiedName(table)}.${column.name}`;
  const alter = `ALTER TABLE ${qualifiedName(table)}`;
  const expected = columnText(column, dialect);
  if (!live)
    return [
      error('missing_column', object, { expected, actual: 'nothing', fixSql: addColumn(table, column, dialect) }),
    ];
  const findings: Finding[] = [];
  const type = column.type[dialect];
  const column_ = quoteIdentifier(column.name);
  const fix = (text: string): string => (dialect === 'postgres' ? `${alter} ALTER COLUMN ${column_} ${text}` : REBUILD);
  const isSameType =
    dialect === 'postgres' ? POSTGRES_TYPES[type]?.includes(live.type) : normalized(live.type) === normalized(type);
  if (!isSameType) {
    const fixSql = fix(`TYPE ${type} USING ${column_}::${type}`);
    findings.push(error('wrong_type', object, { expected: type, actual: live.type, fixSql }));
  }
  if (live.isNullable !== column.isNullable) {
    findings.push(
      error('wrong_nullability', object, {
        expected: column.isNullable ? 'NULL' : 'NOT NULL',
        actual: live.isNullable ? 'NULL' : 'NOT NULL',
        fixSql: fix(column.isNullable ? 'DROP NOT NULL' : 'SET NOT NULL'),
      }),
    );
  }
  const initial = column.default?.[dialect];
  if (initial !== undefined && normalized(live.default) !== normalized(initial)) {
    const fixSql = fix(`SET DEFAULT ${initial}`);
    findings.push(error('wrong_default', object, { expected: initial, actual: live.default ?? 'no default', fixSql }));
  }
  return findings;
}

/** SQLite cannot change columns and constraints in place; on Postgres only you can decide. */
const REBUILD = '';

function addColumn(table: TableDeclaration, column: ColumnDeclaration, dialect: DialectName): string {
  const isExpression = dialect === 'sqlite' && column.default?.sqlite.startsWith('(');
  if (isExpression || column.isIdentity) return REBUILD;
  return `ALTER TABLE ${qualifiedName(table)} ADD COLUMN ${columnText(column, dialect)}`;
}

/** A column that must be set keeps us, who do not know it, from inserting. */
function foreignColumns(table: TableDeclaration, live: LiveTable, dialect: DialectName): Finding[] {
  const known = new Set(table.columns.map(({ name }) => name));
  return [...live.columns]
    .filter(([name, column]) => !known.has(name) && !column.isNullable && column.default === undefined)
    .map(([name]) =>
      error('foreign_column', `${qualifiedName(table)}.${name}`, {
        expected: 'a default, or NULL allowed',
        actual: 'NOT NULL without a default',
        fixSql:
          dialect === 'postgres'
            ? `ALTER TABLE ${qualifiedName(table)} ALTER COLUMN ${quoteIdentifier(name)} DROP NOT NULL`
            : REBUILD,
      }),
    );
}

/** The key of a partitioned table includes the column of its partitions. */
function comparePrimaryKey(table: TableDeclaration, live: LiveTable, dialect: DialectName): Finding[] {
  const isSame = table.primaryKey.join() === live.primaryKey.join();
  const isExtended = live.isPartitioned && table.primaryKey.every((name) => live.primaryKey.includes(name));
  if (isSame || isExtended) return [];
  const expected = `PRIMARY KEY (${table.primaryKey.map(quoteIdentifier).join(', ')})`;
  const actual = live.primaryKey.length === 0 ? 'no primary key' : `PRIMARY KEY (${live.primaryKey.join(', ')})`;
  const fixSql =
    dialect === 'postgres' && live.primaryKey.length === 0
      ? `ALTER TABLE ${qualifiedName(table)} ADD ${expected}`
      : REBUILD;
  return [error('wrong_primary_key', qualifiedName(table), { expected, actual, fixSql })];
}

function compareIndex(
  table: TableDeclaration,
  index: IndexDeclaration,
  { live, dialect }: { readonly live: LiveTable; readonly dialect: DialectName },
): Finding[] {
  const object = index.name;
  const expected = createIndex(table, index);
  const found = live.indexes.get(index.name);
  if (!found) return [error('missing_index', object, { expected, actual: 'nothing', fixSql: expected })];
  const schema = dialect === 'postgres' && table.schema !== undefined ? `${quoteIdentifier(table.schema)}.` : '';
  const fixSql = `DROP INDEX ${schema}${quoteIdentifier(index.name)};\n${expected}`;
  if (!found.isValid) return [error('invalid_index', object, { expected, actual: 'an invalid index', fixSql })];
  const actual = shapeOf(found);
  if (normalized(actual) === normalized(shapeOf(index))) return [];
  return [error('wrong_index', object, { expected, actual, fixSql })];
}

function shapeOf({ columns, isUnique, predicate }: IndexDeclaration | LiveIndex): string {
  const where = predicate === undefined ? '' : ` WHERE ${normalized(predicate)}`;
  return `${isUnique ? 'UNIQUE ' : ''}(${columns.join(', ')})${where}`;
}

/** By predicate: naming conventions make the name unpredictable. */
function compareChecks(table: TableDeclaration, live: LiveTable, dialect: DialectName): Finding[] {
  const predicates = new Set([...live.checks.values()].map(normalized));
  return table.checks
    .filter(({ predicate }) => !predicates.has(normalized(predicate)))
    .map(({ name, predicate }) => {
      const alter = `ALTER TABLE ${qualifiedName(table)}`;
      const drop = live.checks.has(name) ? `${alter} DROP CONSTRAINT ${quoteIdentifier(name)};\n` : '';
      const fixSql = `${drop}${alter} ADD CONSTRAINT ${quoteIdentifier(name)} CHECK (${predicate})`;
      return error('missing_check', `${qualifiedName(table)}.${name}`, {
        expected: `CHECK (${predicate})`,
        actual: live.checks.get(name) ?? 'nothing',
        fixSql: dialect === 'postgres' ? fixSql : REBUILD,
      });
    });
}
