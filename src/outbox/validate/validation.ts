// Checks the live schema of an outbox against its declaration: on demand, never at launch. A check at launch would race
// with a migration that is being rolled out, and keep programs from starting meanwhile.
import { OutboxSchemaDriftError } from '../../model/errors/errors.js';
import { sql } from '../../sql/sql.js';
import type { OutboxDatabase, Transaction } from '../database.js';
import { qualifiedName } from '../schema/ddl.js';
import type { TableDeclaration } from '../schema/tables.js';
import { text } from '../tokens.js';
import { readTable, regclass } from './catalogue.js';
import { compare } from './comparing.js';
import type { Finding } from './finding.js';

export interface SchemaReport {
  /** True if there are no errors; there may be warnings. */
  readonly ok: boolean;
  readonly findings: readonly Finding[];
}

/** Where the docs say how to fix what a migration tool does not see. */
const DOCS = 'docs/guides/outbox.md#fixing-drift';

export async function checkSchema(
  database: OutboxDatabase,
  tables: readonly TableDeclaration[],
): Promise<SchemaReport> {
  const { dialect } = database.driver;
  const findings = await database.connected(() =>
    database.transact(
      async (tx) => {
        const found: Finding[] = [];
        for (const table of tables) {
          const live = await readTable(tx, table, dialect);
          found.push(...compare(table, live, dialect));
          if (live && dialect === 'postgres') found.push(...(await privilegesOf(tx, table)));
          if (live?.isPartitioned) found.push(...(await partitionsOf(tx, table)));
        }
        return found;
      },
      { readOnly: true },
    ),
  );
  return { ok: findings.every(({ severity }) => severity !== 'error'), findings };
}

/** All findings in one error. */
export function driftError({ findings }: SchemaReport): OutboxSchemaDriftError<Finding> {
  const lines = findings.map(
    ({ code, object, expected, actual }) => `- ${object}: ${code}: expected ${expected}, found ${actual}`,
  );
  return new OutboxSchemaDriftError(
    `The tables of the outbox differ from their declaration:\n${lines.join('\n')}\nEach finding has its fixSql. See ${DOCS}.`,
    findings,
  );
}

const PRIVILEGES = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'] as const;

async function privilegesOf(tx: Transaction, table: TableDeclaration): Promise<Finding[]> {
  const [row] = await tx.run(sql`
    SELECT quote_ident(current_user) AS role, has_table_privilege(${regclass(table)}::oid, 'SELECT') AS "SELECT",
      has_table_privilege(${regclass(table)}::oid, 'INSERT') AS "INSERT",
      has_table_privilege(${regclass(table)}::oid, 'UPDATE') AS "UPDATE",
      has_table_privilege(${regclass(table)}::oid, 'DELETE') AS "DELETE"`);
  const missing = PRIVILEGES.filter((privilege) => row?.[privilege] !== true).join(', ');
  if (missing === '') return [];
  const name = qualifiedName(table);
  const fixSql = `GRANT ${missing} ON ${name} TO ${String(row?.['role'])}`;
  const object = `${name} for ${String(row?.['role'])}`;
  return [{ code: 'missing_privilege', severity: 'error', object, expected: missing, actual: 'not granted', fixSql }];
}

/** With no partition for now, dead letters cannot be written, and their messages come back again and again. */
async function partitionsOf(tx: Transaction, table: TableDeclaration): Promise<Finding[]> {
  const rows = await tx.run(sql`
    SELECT c.relname::text AS name, pg_get_expr(c.relpartbound, c.oid) AS bound
    FROM pg_catalog.pg_inherits AS i
    JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
    WHERE i.inhparent = ${regclass(table)}`);
  const [months] = await tx.run(sql`
    SELECT to_char(date_trunc('month', now()), 'YYYY_MM') AS this_name, date_trunc('month', now())::text AS this_from,
      to_char(date_trunc('month', now()) + INTERVAL '1 month', 'YYYY_MM') AS next_name,
      (date_trunc('month', now()) + INTERVAL '1 month')::text AS next_from,
      (date_trunc('month', now()) + INTERVAL '2 months')::text AS next_to`);
  const hasDefault = rows.some(({ bound }) => bound === 'DEFAULT');
  const covers = async (time: string): Promise<boolean> => {
    const times = rows.flatMap(({ bound }) => {
      const [, from, to] = /FROM \('([^']+)'\) TO \('([^']+)'\)/.exec(String(bound)) ?? [];
      return from !== undefined && to !== undefined ? [{ from, to }] : [];
    });
    for (const { from, to } of times) {
      const [row] = await tx.run(
        sql`SELECT ${text(time)}::timestamptz >= ${text(from)}::timestamptz AND ${text(time)}::timestamptz < ${text(to)}::timestamptz AS covered`,
      );
      if (row?.['covered'] === true) return true;
    }
    return false;
  };
  const periods = [
    { name: months?.['this_name'], from: months?.['this_from'], to: months?.['next_from'], severity: 'error' },
    { name: months?.['next_name'], from: months?.['next_from'], to: months?.['next_to'], severity: 'warning' },
  ] as const;
  const findings: Finding[] = [];
  for (const { name, from, to, severity } of periods) {
    if (await covers(String(from))) continue;
    const partition = qualifiedName({ tableName: `${table.tableName}_${String(name)}`, schema: table.schema });
    findings.push({
      code: 'missing_partition',
      severity: hasDefault ? 'warning' : severity,
      object: qualifiedName(table),
      expected: `a partition for ${String(from)}`,
      actual: hasDefault ? 'the default partition' : 'none',
      fixSql: `CREATE TABLE ${partition} PARTITION OF ${qualifiedName(table)} FOR VALUES FROM ('${String(from)}') TO ('${String(to)}')`,
    });
  }
  return findings;
}
