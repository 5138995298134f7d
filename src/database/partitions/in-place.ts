// Partitions a plain table without moving a row: the table becomes the first partition of a new one with its name, up to a
// time that has not come yet. All rows are visible all the time.
//
//   plain ──index of the new key──► ──CHECK (column < until)──► ──VALIDATE──► ──swap──► partitioned
//
// Only the swap and the addition of the CHECK lock the table, both for a moment. Each phase can be repeated, so a conversion
// that was interrupted is continued by the next one. Its CHECK must not stay: it would refuse rows when its time has come.
import { PartitioningError } from '../../kernel/errors/errors.js';
import { quoteIdentifier, sql } from '../../kernel/sql/sql.js';
import { carrySequence, createParent, grantsOf } from './conversion.js';
import { freeName, newPartitions } from './lacking-partitions.js';
import { type LivePartitions, partitionText, readPartitions } from './partitions.js';
import { type Every, periodOf, periodsFrom } from './periods.js';
import type { PartitionSession, PartitionTransaction } from './session.js';
import {
  millisecondsText,
  nameOf,
  rangeText,
  regclassOf,
  type TableName,
  type TimedTable,
  timeText,
  verbatim,
} from './timed-table.js';

export interface InPlace {
  readonly every: Every;
  /** How many partitions exist in advance. */
  readonly ahead: number;
  /** Runs a transaction that needs a lock again if it does not get it. */
  readonly patiently: <T>(attempt: () => Promise<T>) => Promise<T>;
}

type Resolved = TimedTable & { readonly schema: string };

/** The name of the CHECK, and the end of that of the index. */
const UNTIL = 'everstep_until';
/** A row may be ahead of the clock by this much when the conversion begins. */
const MARGIN_MS = 3_600_000;
const SHORT_LOCK = `SET LOCAL lock_timeout = '2s'`;

/** Returns false if the table has partitions already. */
export async function partitionInPlace(
  session: PartitionSession,
  table: TimedTable,
  options: InPlace,
): Promise<boolean> {
  const live = await readPartitions(session, table);
  if (!live) throw new PartitioningError(`There is no table ${nameOf(table)} to partition.`);
  if (live.isPartitioned) return false;
  const resolved = { ...table, schema: live.schema };
  const { every, patiently } = options;
  await indexNewKey(session, resolved);
  // A whole period for the conversion, after the last row.
  const untilMs = periodOf(Math.max(await lastMs(session, resolved), live.nowMs) + MARGIN_MS, every).toMs;
  const bound = periodOf(untilMs, every);
  const check = `CHECK (${quoteIdentifier(table.column)} < ${timeText(table, bound.toMs)}) NOT VALID`;
  const name = nameOf(resolved);
  await patiently(() =>
    session.transact(async (tx) => {
      await tx.exec(SHORT_LOCK);
      await tx.exec(`ALTER TABLE ${name} DROP CONSTRAINT IF EXISTS ${UNTIL}, ADD CONSTRAINT ${UNTIL} ${check}`);
    }),
  );
  try {
    await session.exec(`ALTER TABLE ${name} VALIDATE CONSTRAINT ${UNTIL}`);
    return await patiently(() => session.transact((tx) => swap(tx, resolved, { ...options, live, bound })));
  } catch (error) {
    await patiently(() => session.transact((tx) => dropCheck(tx, resolved))).catch(() => {
      // The first error says what went wrong. `dropOldCheck` follows.
    });
    throw error;
  }
}

/** When the CHECK that an interrupted conversion has left begins to refuse rows; undefined if there is none. */
export async function refusesFrom(
  session: Pick<PartitionTransaction, 'run'>,
  table: TimedTable,
): Promise<number | undefined> {
  const [row] = await session.run(sql`
    SELECT substring(pg_get_constraintdef(k.oid) FROM '[0-9]{10,}')::float8 AS until_ms
    FROM pg_catalog.pg_constraint AS k
    WHERE k.conrelid = ${regclassOf(table)} AND k.conname = CAST(${UNTIL} AS TEXT)`);
  return row ? Number(row['until_ms']) : undefined;
}

/** A conversion that is still at work has finished by then, or never will. */
const NEAR_MS = 6 * 3_600_000;

/** Drops the CHECK of a conversion that was interrupted, some hours before it would refuse rows. */
export async function dropOldCheck(session: PartitionSession, table: TimedTable, nowMs: number): Promise<boolean> {
  const untilMs = await refusesFrom(session, table);
  if (untilMs === undefined || untilMs - nowMs > NEAR_MS) return false;
  await session.transact((tx) => dropCheck(tx, table));
  return true;
}

async function dropCheck(tx: PartitionTransaction, table: TimedTable): Promise<void> {
  await tx.exec(SHORT_LOCK);
  await tx.exec(`ALTER TABLE ${nameOf(table)} DROP CONSTRAINT IF EXISTS ${UNTIL}`);
}

function keyIndexOf({ tableName, schema }: Resolved): TableName {
  return { tableName: `${tableName}_${UNTIL}`, schema };
}

/** The key of the old table gets the column. Without an index that is there, attaching the table would build one. */
async function indexNewKey(session: PartitionSession, table: Resolved): Promise<void> {
  const { columns } = await primaryKeyOf(session, table);
  if (columns === table.key.join(',')) return;
  const index = keyIndexOf(table);
  const [found] = await session.run(sql`
    SELECT i.indisvalid AS is_valid FROM pg_catalog.pg_index AS i WHERE i.indexrelid = ${regclassOf(index)}`);
  if (found?.['is_valid'] === true) return;
  // One that was interrupted is never completed.
  if (found) await session.exec(`DROP INDEX CONCURRENTLY ${nameOf(index)}`);
  const key = table.key.map(quoteIdentifier).join(', ');
  await session.exec(
    `CREATE UNIQUE INDEX CONCURRENTLY ${quoteIdentifier(index.tableName)} ON ${nameOf(table)} (${key})`,
  );
}

async function primaryKeyOf(session: Pick<PartitionTransaction, 'run'>, table: TableName) {
  const [row] = await session.run(sql`
    SELECT k.conname::text AS name, (
      SELECT string_agg(a.attname, ',' ORDER BY n.position)
      FROM unnest(k.conkey) WITH ORDINALITY AS n(number, position)
      JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = n.number) AS columns
    FROM pg_catalog.pg_constraint AS k
    WHERE k.conrelid = ${regclassOf(table)} AND k.contype = 'p'`);
  if (!row) throw new PartitioningError(`The table ${nameOf(table)} has no primary key.`);
  return { name: String(row['name']), columns: String(row['columns']) };
}

async function lastMs(session: PartitionSession, table: Resolved): Promise<number> {
  const last = verbatim(millisecondsText(table, `MAX(d.${quoteIdentifier(table.column)})`));
  const [row] = await session.run(sql`SELECT ${last} AS last_ms FROM ${verbatim(nameOf(table))} AS d`);
  return Number(row?.['last_ms'] ?? 0);
}

interface Swap extends InPlace {
  readonly live: LivePartitions;
  /** The last period of the first partition. */
  readonly bound: { readonly toMs: number };
}

/** Returns false if another process was faster. */
async function swap(tx: PartitionTransaction, table: Resolved, options: Swap): Promise<boolean> {
  const { bound, every, ahead, live } = options;
  await tx.exec(SHORT_LOCK);
  await tx.exec(`LOCK TABLE ${nameOf(table)} IN ACCESS EXCLUSIVE MODE`);
  const now = await readPartitions(tx, table);
  if (now?.isPartitioned === true) return false;
  // Definitions name what is not in the search path with its schema.
  await tx.exec('SET LOCAL search_path = pg_catalog, pg_temp');
  const first = { tableName: freeName(`${table.tableName}_first`, new Set()), schema: table.schema };
  const range = { fromMs: -Infinity, toMs: bound.toMs };
  const views = await viewsOn(tx, table);
  const triggers = await triggersOn(tx, table);
  const grants = await grantsOf(tx, table);
  await becomeOwner(tx, table);

  const indexes = await renameAway(tx, table, first);
  await createParent(tx, table, first);
  await tx.exec(`ALTER TABLE ${nameOf(table)} DROP CONSTRAINT ${UNTIL}`);
  await carrySequence(tx, table, first);
  for (const definition of indexes) await tx.exec(definition);
  for (const { name, isOfRows, definition } of triggers) {
    // Attaching a table gives it those of the parent.
    if (isOfRows) await tx.exec(`DROP TRIGGER ${quoteIdentifier(name)} ON ${nameOf(first)}`);
    await tx.exec(definition);
  }
  for (const statement of [...grants, ...views]) await tx.exec(statement);
  await tx.exec(`ALTER TABLE ${nameOf(table)} ATTACH PARTITION ${nameOf(first)} ${rangeText(table, range)}`);
  await tx.exec(`ALTER TABLE ${nameOf(first)} DROP CONSTRAINT ${UNTIL}`);

  const periods = periodsFrom(bound.toMs, every, ahead);
  const taken = { ...live, partitions: [{ ...first, ...range, isDefault: false, isDetaching: false }] };
  for (const partition of newPartitions(table, taken, periods)) {
    await tx.exec(partitionText(table, partition));
    for (const statement of table.completing?.(partition) ?? []) await tx.exec(statement);
  }
  const standard = { tableName: `${table.tableName}_default`, schema: table.schema };
  await tx.exec(`CREATE TABLE ${nameOf(standard)} PARTITION OF ${nameOf(table)} DEFAULT`);
  for (const statement of table.completing?.(standard) ?? []) await tx.exec(statement);
  return true;
}

/** What is created belongs to the owner of the table, not to the connected role. */
async function becomeOwner(tx: PartitionTransaction, table: TableName): Promise<void> {
  const [row] = await tx.run(sql`
    SELECT c.relowner::regrole::text AS owner, c.relowner::regrole::text <> quote_ident(current_user) AS is_other
    FROM pg_catalog.pg_class AS c
    WHERE c.oid = ${regclassOf(table)}`);
  if (row?.['is_other'] === true) await tx.exec(`SET LOCAL ROLE ${String(row['owner'])}`);
}

/** Frees the names of the table and its indexes, and returns the definitions of those that the new table gets. */
async function renameAway(tx: PartitionTransaction, table: Resolved, first: TableName): Promise<string[]> {
  const { name: oldKey, columns } = await primaryKeyOf(tx, table);
  const rows = await tx.run(sql`
    SELECT c.relname::text AS name, i.indisunique AS is_unique, pg_get_indexdef(c.oid) AS definition
    FROM pg_catalog.pg_index AS i
    JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
    WHERE i.indrelid = ${regclassOf(table)} AND NOT i.indisprimary
    ORDER BY c.relname`);
  await tx.exec(`ALTER TABLE ${nameOf(table)} RENAME TO ${quoteIdentifier(first.tableName)}`);
  const newKey = quoteIdentifier(`${first.tableName}_pkey`);
  const constraint = quoteIdentifier(oldKey);
  const isExtended = columns !== table.key.join(',');
  if (isExtended) {
    const index = quoteIdentifier(keyIndexOf(table).tableName);
    await tx.exec(
      `ALTER TABLE ${nameOf(first)} DROP CONSTRAINT ${constraint}, ADD CONSTRAINT ${newKey} PRIMARY KEY USING INDEX ${index}`,
    );
  } else await tx.exec(`ALTER TABLE ${nameOf(first)} RENAME CONSTRAINT ${constraint} TO ${newKey}`);
  const others = rows.filter((row) => row['name'] !== keyIndexOf(table).tableName);
  for (const [index, row] of others.entries()) {
    const taken = nameOf({ tableName: String(row['name']), schema: table.schema });
    await tx.exec(`ALTER INDEX ${taken} RENAME TO ${quoteIdentifier(`${first.tableName}_index_${index + 1}`)}`);
  }
  // A unique index holds within each partition; see `completing`.
  return others.filter((row) => row['is_unique'] !== true).map((row) => String(row['definition']));
}

/** Statements that make the views of a table select from the new one with its name. */
async function viewsOn(tx: PartitionTransaction, table: TableName): Promise<string[]> {
  const rows = await tx.run(sql`
    SELECT DISTINCT c.oid::regclass::text AS name, c.relkind::text AS kind, pg_get_viewdef(c.oid) AS definition,
      array_to_string(c.reloptions, ', ') AS options
    FROM pg_catalog.pg_depend AS d
    JOIN pg_catalog.pg_rewrite AS r ON r.oid = d.objid
    JOIN pg_catalog.pg_class AS c ON c.oid = r.ev_class
    WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
      AND d.refobjid = ${regclassOf(table)} AND c.oid <> ${regclassOf(table)}`);
  return rows.map((row) => {
    const name = String(row['name']);
    if (row['kind'] !== 'v') {
      throw new PartitioningError(`${name} selects from ${nameOf(table)} and is no view. Drop it, and try again.`);
    }
    const options = typeof row['options'] === 'string' ? ` WITH (${row['options']})` : '';
    return `CREATE OR REPLACE VIEW ${name}${options} AS ${String(row['definition'])}`;
  });
}

async function triggersOn(tx: PartitionTransaction, table: TableName) {
  const rows = await tx.run(sql`
    SELECT t.tgname::text AS name, (t.tgtype & 1) = 1 AS is_of_rows, pg_get_triggerdef(t.oid) AS definition
    FROM pg_catalog.pg_trigger AS t
    WHERE t.tgrelid = ${regclassOf(table)} AND NOT t.tgisinternal
    ORDER BY t.tgname`);
  return rows.map((row) => ({
    name: String(row['name']),
    isOfRows: row['is_of_rows'] === true,
    definition: String(row['definition']),
  }));
}
