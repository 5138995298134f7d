// For applications whose database is also the system database: detects that, and writes a checkpoint in the application's
// own transaction and connection.
import { statSync } from 'node:fs';
import { refusal } from '../../kernel/sql/refusal.js';
import { idents, render, type Rendered, setting, sql, type Sql, table, type Token } from '../../kernel/sql/sql.js';
import { checkpointColumns } from '../columns.js';
import type { Database, Row } from '../database.js';
import { isPostgres } from '../postgres/is-postgres.js';
import { refuseOtherCopy } from '../sqlite/copies-of-sqlite.js';
import { SqliteDatabase } from '../sqlite/sqlite-database.js';
import { type Checkpoint, insertCheckpoints } from '../../run/rows/steps.js';
import { isPending } from '../../run/rows/states.js';
import { lockedAgainstTakeOver } from '../../run/rows/workflows.js';

/** Runs one statement, with the dialect's placeholders, on an application's connection. */
export type Query = (text: string, values: Rendered['values']) => Promise<readonly Row[]>;

const otherColumns = checkpointColumns.columns.filter(({ field }) => field !== 'stepID');
const otherNames = idents(otherColumns.map(({ name }) => name));

/**
 * Like `insertCheckpoints`, but fails where that writes nothing, or where an earlier checkpoint is missing. Simple, because
 * some drivers have it planned each time. The setting keeps a trigger from looking for the workflow again.
 */
function insertOnPostgres({ owner, step }: Checkpoint, restsOn: number | undefined): Sql {
  return sql`
    INSERT INTO ${table('operation_outputs')} (function_id, ${otherNames})
    VALUES (
      CASE WHEN EXISTS (
        SELECT 1
        FROM ${table('workflow_status')} AS w
        WHERE w.workflow_uuid = ${step.workflowID} AND w.owner_xid = ${owner} AND ${isPending('w')}
        ${lockedAgainstTakeOver})
      AND COALESCE(${setting('everstep.checked', step.workflowID)}, '') IS NOT NULL ${restsOn === undefined ? sql`` : isThere(step.workflowID, restsOn)}
      THEN CAST(${step.stepID} AS INTEGER) ELSE ${refusal} END${otherValues(step)})`;
}

function isThere(workflowID: string, stepID: number): Sql {
  return sql`
      AND EXISTS (
        SELECT 1
        FROM ${table('operation_outputs')} AS o
        WHERE o.workflow_uuid = ${workflowID} AND o.function_id = CAST(${stepID} AS INTEGER))`;
}

/** The other values, each after a comma. One token: the shapes of as many fragments would be computed for each step. */
function otherValues(step: Checkpoint['step']): Token {
  return {
    shape: 'step-values;',
    write(out) {
      for (let count = otherColumns.length; count > 0; count -= 1) {
        out.text(', ');
        out.placeholder();
      }
    },
    collect(values) {
      for (const { field } of otherColumns) values.push(step[field] ?? null);
    },
  };
}

export type { Rendered };

/**
 * The statement that writes the checkpoint. If the guard refuses it or the step already has one, it returns no row on
 * SQLite and fails on Postgres. `restsOn`: the checkpoint before it, which a server that was promoted meanwhile may lack.
 */
export function joinedCheckpoint({ dialect }: Database, checkpoint: Checkpoint, restsOn?: number): Rendered {
  const statement =
    dialect.name === 'postgres' ? insertOnPostgres(checkpoint, restsOn) : insertCheckpoints([checkpoint]);
  return render(statement, dialect);
}

/** Whether `query` runs on the system database, with a role that may write checkpoints. */
export async function isSameDatabase(database: Database, query: Query): Promise<boolean> {
  if (database instanceof SqliteDatabase) return isSameFile(database, query);
  const here = await database.read(IDENTITY);
  const { text, values } = render(IDENTITY, database.dialect);
  const there = await query(text, values);
  if (here[0] === undefined || here[0]['identity'] !== there[0]?.['identity']) return false;
  const schema = (isPostgres(database) ? database.options.schema : undefined) ?? 'dbos';
  const rights = render(rightsIn(database, schema), database.dialect);
  return (await query(rights.text, rights.values))[0]?.['allowed'] === true;
}

/** Identifies a server by its start time, and a database on it. */
const IDENTITY = sql`
  SELECT CONCAT(EXTRACT(EPOCH FROM pg_postmaster_start_time()), '/', d.oid, '/', d.datname) AS identity
  FROM pg_catalog.pg_database AS d
  WHERE d.datname = current_database()`;

/** Whether the role has the privileges that a checkpoint needs. The row lock of its guard needs UPDATE. */
function rightsIn({ dialect }: Database, schema: string): Sql {
  const steps = dialect.table('operation_outputs');
  const workflows = dialect.table('workflow_status');
  return sql`
    SELECT CASE WHEN has_schema_privilege(${schema}::text, 'USAGE')
      THEN has_table_privilege(${steps}::text, 'INSERT') AND has_table_privilege(${steps}::text, 'SELECT')
        AND has_table_privilege(${workflows}::text, 'SELECT') AND has_table_privilege(${workflows}::text, 'UPDATE')
      ELSE FALSE END AS allowed`;
}

async function isSameFile(database: SqliteDatabase, query: Query): Promise<boolean> {
  const files = await query('PRAGMA database_list', []);
  const path = files.find((file) => file['name'] === 'main')?.['file'];
  if (typeof path !== 'string' || path === '' || database.path === ':memory:') return false;
  const here = statSync(database.path, { throwIfNoEntry: false });
  const there = statSync(path, { throwIfNoEntry: false });
  if (here === undefined || there?.ino !== here.ino || there.dev !== here.dev) return false;
  await refuseOtherCopy(database, (text) => query(text, []));
  return true;
}
