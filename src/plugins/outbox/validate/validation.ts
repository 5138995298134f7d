// Checks the live schema of an outbox against its declaration: on demand, never at launch. A check at launch would race
// with a migration that is being rolled out, and keep programs from starting meanwhile.
import { OutboxSchemaDriftError } from '../../../kernel/errors/errors.js';
import { sql } from '../../../kernel/sql/sql.js';
import type { OutboxDatabase, Transaction } from '../database.js';
import { boolean, optional, record } from '../../../kernel/check/validation.js';
import { AUTOVACUUM, autovacuumText, isBusy, qualifiedName } from '../schema/ddl.js';
import type { TableDeclaration } from '../schema/tables.js';
import { coverageOf } from '../retention/coverage.js';
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

export interface CheckOptions {
  /** Asks for the settings of `ddl({ autovacuum: true })`. Default: false. */
  readonly autovacuum?: boolean;
}

const OPTIONS = record({ autovacuum: optional(boolean) });

export async function checkSchema(
  database: OutboxDatabase,
  tables: readonly TableDeclaration[],
  options: CheckOptions = {},
): Promise<SchemaReport> {
  const { autovacuum } = OPTIONS.read(options, 'options');
  const { dialect } = database.driver;
  const findings = await database.connected(() =>
    database.transact(
      async (tx) => {
        const found: Finding[] = [];
        for (const table of tables) {
          const live = await readTable(tx, table, dialect);
          found.push(...compare(table, live, dialect));
          if (live && dialect === 'postgres') found.push(...(await privilegesOf(tx, table)));
          if (live && autovacuum && dialect === 'postgres' && isBusy(table))
            found.push(...(await settingsOf(tx, table)));
          if (live?.isPartitioned) found.push(...(await coverageOf(tx, table)));
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

/** Warnings: messages are delivered without them, but the table grows. */
async function settingsOf(tx: Transaction, table: TableDeclaration): Promise<Finding[]> {
  const rows = await tx.run(sql`
    SELECT o.option_name::text AS name, o.option_value::text AS value
    FROM pg_catalog.pg_class AS c, pg_options_to_table(c.reloptions) AS o
    WHERE c.oid = ${regclass(table)}`);
  const live = new Map(rows.map((row) => [String(row['name']), String(row['value'])]));
  const isSet = ([name, value]: [string, string]): boolean =>
    name.endsWith('scale_factor') ? Number(live.get(name) ?? 1) === Number(value) : live.has(name);
  const missing = Object.entries(AUTOVACUUM).filter((setting) => !isSet(setting));
  if (missing.length === 0) return [];
  const expected = missing.map(([name, value]) => `${name} = ${value}`).join(', ');
  const actual = missing.map(([name]) => `${name} = ${live.get(name) ?? 'default'}`).join(', ');
  const object = qualifiedName(table);
  return [{ code: 'autovacuum', severity: 'warning', object, expected, actual, fixSql: autovacuumText(table) }];
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
