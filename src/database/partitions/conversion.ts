// Puts a partitioned table in place of a plain one. The application is held up only while the names change. The rows move
// afterwards, in batches; an interrupted move is continued by the next call.
//
//   plain ──rename, create──► partitioned, rows in <table>_old ──move──► partitioned
import { PartitioningError } from '../../kernel/errors/errors.js';
import { quoteIdentifier, sql } from '../../kernel/sql/sql.js';
import { columnsOf, LOCK_TIMEOUT, type NewPartition, partitionText } from './partitions.js';
import type { PartitionSession, PartitionTransaction } from './session.js';
import { nameOf, regclassOf, type TableName, type TimedTable, verbatim } from './timed-table.js';

/** Rows per commit. */
const BATCH = 1000;

/** Where the rows of a plain table are after it was replaced, until they have moved. */
export function oldOf<T extends TableName>(table: T): T {
  return { ...table, tableName: `${table.tableName}_old` };
}

/** Whether a table exists, for what a conversion leaves behind. */
export async function tableExists(session: Pick<PartitionTransaction, 'run'>, table: TableName): Promise<boolean> {
  const [row] = await session.run(sql`SELECT ${regclassOf(table)} IS NOT NULL AS found`);
  return row?.['found'] === true;
}

/** Puts an empty partitioned table in place of the plain one. The table is given with its schema. */
export async function replaceTable(
  session: PartitionSession,
  table: TimedTable & { readonly schema: string },
  partitions: readonly NewPartition[],
): Promise<void> {
  const old = oldOf(table);
  if (await tableExists(session, old)) {
    throw new PartitioningError(`The table ${nameOf(old)} exists. Rename or drop it, and convert again.`);
  }
  await session.transact(async (tx) => {
    await tx.exec(LOCK_TIMEOUT);
    await tx.exec(`LOCK TABLE ${nameOf(table)} IN ACCESS EXCLUSIVE MODE`);
    const indexes = await indexesOf(tx, table);
    const grants = await grantsOf(tx, table);
    await tx.exec(`ALTER TABLE ${nameOf(table)} RENAME TO ${quoteIdentifier(old.tableName)}`);
    for (const { name, oid } of indexes) {
      const taken = nameOf({ tableName: name, schema: table.schema });
      await tx.exec(`ALTER INDEX ${taken} RENAME TO ${quoteIdentifier(`everstep_old_${oid}`)}`);
    }
    await createParent(tx, table, old);
    await carrySequence(tx, table, old);
    for (const { definition } of indexes) if (definition !== undefined) await tx.exec(definition);
    for (const grant of grants) await tx.exec(grant);
    for (const partition of partitions) await tx.exec(partitionText(table, partition));
  });
}

/** Creates the partitioned table with the columns of the plain one. */
export async function createParent(tx: PartitionTransaction, table: TimedTable, old: TableName): Promise<void> {
  const key = table.key.map(quoteIdentifier).join(', ');
  await tx.exec(
    `CREATE TABLE ${nameOf(table)} (LIKE ${nameOf(old)} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED ` +
      `INCLUDING STORAGE INCLUDING COMMENTS, PRIMARY KEY (${key})) PARTITION BY RANGE (${quoteIdentifier(table.column)})`,
  );
}

/** The column that the database numbers goes on where it is, so that no number is given twice. */
export async function carrySequence(tx: PartitionTransaction, table: TableName, old: TableName): Promise<void> {
  const [row] = await tx.run(sql`
    SELECT a.attname::text AS column, s.oid::regclass::text AS sequence, a.attidentity::text AS identity
    FROM pg_catalog.pg_attribute AS a
    JOIN pg_catalog.pg_depend AS d ON d.refobjid = a.attrelid AND d.refobjsubid = a.attnum AND d.deptype IN ('a', 'i')
      AND d.classid = 'pg_class'::regclass
    JOIN pg_catalog.pg_class AS s ON s.oid = d.objid AND s.relkind = 'S'
    WHERE a.attrelid = ${regclassOf(old)}
    ORDER BY a.attnum
    LIMIT 1`);
  if (!row) return;
  const column = quoteIdentifier(String(row['column']));
  const sequence = String(row['sequence']);
  if (row['identity'] === '') {
    await tx.exec(`ALTER SEQUENCE ${sequence} OWNED BY ${nameOf(table)}.${column}`);
    return;
  }
  const [last] = await tx.run(sql`
    SELECT (s.last_value + CASE WHEN s.is_called THEN 1 ELSE 0 END)::text AS next FROM ${verbatim(sequence)} AS s`);
  const kind = row['identity'] === 'a' ? 'ALWAYS' : 'BY DEFAULT';
  // A partition cannot have an identity of its own.
  await tx.exec(`ALTER TABLE ${nameOf(old)} ALTER COLUMN ${column} DROP IDENTITY`);
  await tx.exec(
    `ALTER TABLE ${nameOf(table)} ALTER COLUMN ${column} ADD GENERATED ${kind} AS IDENTITY (START WITH ${String(last?.['next'])})`,
  );
}

/** All indexes, with the definitions of those that the new table gets. */
async function indexesOf(tx: PartitionTransaction, table: TableName) {
  const rows = await tx.run(sql`
    SELECT c.relname::text AS name, c.oid::text AS oid, i.indisprimary AS is_primary, i.indisunique AS is_unique,
      pg_get_indexdef(c.oid) AS definition
    FROM pg_catalog.pg_index AS i
    JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
    WHERE i.indrelid = ${regclassOf(table)}`);
  return rows.map((row) => {
    const name = String(row['name']);
    const isPrimary = row['is_primary'] === true;
    if (row['is_unique'] === true && !isPrimary) {
      throw new PartitioningError(
        `The index "${name}" is unique over all rows, which partitions cannot be. Drop it, and convert again.`,
      );
    }
    return { name, oid: String(row['oid']), definition: isPrimary ? undefined : String(row['definition']) };
  });
}

/** The statements that give other roles what they may do with the table. */
export async function grantsOf(tx: PartitionTransaction, table: TableName): Promise<string[]> {
  const rows = await tx.run(sql`
    SELECT string_agg(a.privilege_type, ', ') AS privileges,
      CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee
    FROM pg_catalog.pg_class AS c, aclexplode(c.relacl) AS a
    WHERE c.oid = ${regclassOf(table)} AND a.grantee <> c.relowner
    GROUP BY a.grantee`);
  return rows.map((row) => `GRANT ${String(row['privileges'])} ON ${nameOf(table)} TO ${String(row['grantee'])}`);
}

/** Moves what is left in the old table, and drops it. Returns how many rows. */
export async function moveOldRows(session: PartitionSession, table: TimedTable): Promise<number> {
  const old = oldOf(table);
  const [from, to] = [verbatim(nameOf(old)), verbatim(nameOf(table))];
  const columns = await columnsOf(session, table);
  const prefixed = verbatim(columns.replaceAll(/(^|, )/g, '$1o.'));
  const key = table.key.map(quoteIdentifier);
  const isPicked = verbatim(key.map((column) => `o.${column} = picked.${column}`).join(' AND '));
  const keyText = verbatim(key.join(', '));
  for (let moved = 0; ;) {
    const [row] = await session.transact((tx) =>
      tx.run(sql`
        WITH picked AS MATERIALIZED (SELECT ${keyText} FROM ${from} ORDER BY ${keyText} LIMIT ${verbatim(String(BATCH))} FOR UPDATE),
        moved AS (DELETE FROM ${from} AS o USING picked WHERE ${isPicked} RETURNING ${prefixed}),
        added AS (INSERT INTO ${to} (${verbatim(columns)}) SELECT ${verbatim(columns)} FROM moved RETURNING 1)
        SELECT COUNT(*) AS count FROM added`),
    );
    const count = Number(row?.['count']);
    moved += count;
    if (count > 0) continue;
    await session.exec(`DROP TABLE ${nameOf(old)}`);
    return moved;
  }
}
