// The partitions of a table: what there is, and the statements that change it.
import { quoteIdentifier, sql } from '../../kernel/sql/sql.js';
import type { Range } from './periods.js';
import type { PartitionSession, PartitionTransaction } from './session.js';
import {
  literal,
  millisecondsText,
  nameOf,
  rangeText,
  regclassOf,
  type TableName,
  type TimedTable,
  timeText,
  verbatim,
} from './timed-table.js';

export interface NewPartition extends Range {
  readonly tableName: string;
  readonly schema: string;
}

export interface Partition extends NewPartition {
  readonly isDefault: boolean;
  /** A DETACH CONCURRENTLY was interrupted, and has to be finalized. */
  readonly isDetaching: boolean;
}

export interface LivePartitions {
  readonly nowMs: number;
  readonly isPartitioned: boolean;
  /** The schema that the table is in. */
  readonly schema: string;
  readonly partitions: readonly Partition[];
  /** Tables that were detached and not dropped yet. */
  readonly leftOver: readonly Pick<Partition, 'tableName' | 'schema'>[];
}

type Runner = Pick<PartitionTransaction, 'run'>;

/** What a bound looks like in the catalogue. Others are MINVALUE and MAXVALUE. */
const BOUNDS = { timestamptz: `''([^'']+)''`, milliseconds: `''?(-?[0-9]+)''?` } as const;
const TYPES = { timestamptz: 'timestamptz', milliseconds: 'bigint' } as const;

/** Undefined if the table does not exist. */
export async function readPartitions(session: Runner, table: TimedTable): Promise<LivePartitions | undefined> {
  const [found] = await session.run(sql`
    SELECT c.relkind::text AS kind, n.nspname::text AS schema,
      (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::float8 AS now_ms
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = ${regclassOf(table)}`);
  if (!found) return undefined;
  const schema = String(found['schema']);
  const bound = (word: string) =>
    verbatim(
      millisecondsText(
        table,
        `(substring(pg_get_expr(c.relpartbound, c.oid) FROM '${word} [(]${BOUNDS[table.unit]}[)]')::${TYPES[table.unit]})`,
      ),
    );
  const rows = await session.run(sql`
    SELECT c.relname::text AS name, n.nspname::text AS schema, pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT' AS is_default,
      COALESCE((to_jsonb(i) ->> 'inhdetachpending')::boolean, FALSE) AS is_detaching,
      ${bound('FROM')} AS from_ms, ${bound('TO')} AS to_ms
    FROM pg_catalog.pg_inherits AS i
    JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE i.inhparent = ${regclassOf(table)}
    ORDER BY 5 NULLS FIRST`);
  const mark = expiredMark({ ...table, schema });
  const leftOver = await session.run(sql`
    SELECT c.relname::text AS name, n.nspname::text AS schema
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_description AS d ON d.objoid = c.oid AND d.classoid = 'pg_class'::regclass AND d.objsubid = 0
    WHERE NOT c.relispartition AND c.relkind = 'r' AND d.description = CAST(${mark} AS TEXT)`);
  return {
    nowMs: Number(found['now_ms']),
    isPartitioned: found['kind'] === 'p',
    schema,
    partitions: rows.map((row) => ({
      tableName: String(row['name']),
      schema: String(row['schema']),
      isDefault: row['is_default'] === true,
      isDetaching: row['is_detaching'] === true,
      fromMs: row['from_ms'] == null ? -Infinity : Number(row['from_ms']),
      toMs: row['to_ms'] == null ? Infinity : Number(row['to_ms']),
    })),
    leftOver: leftOver.map((row) => ({ tableName: String(row['name']), schema: String(row['schema']) })),
  };
}

/** The comment on a partition that is about to be dropped, so that it is found after a crash in between. */
function expiredMark(table: TableName): string {
  return `everstep: expired partition of ${nameOf(table)}`;
}

/** How long a change of partitions waits for a lock. Statements of the application queue up behind it. */
export const LOCK_TIMEOUT = `SET LOCAL lock_timeout = '5s'`;

/** Creates an empty partition. */
export function partitionText(table: TimedTable, partition: NewPartition): string {
  return `CREATE TABLE ${nameOf(partition)} PARTITION OF ${nameOf(table)} ${rangeText(table, partition)}`;
}

export interface Creation {
  readonly partition: NewPartition;
  /** The default partition, if there is one. */
  readonly standard: TableName | undefined;
}

/**
 * Creates a partition, with the rows of its range that are in the default partition, and returns their number. Attaching a
 * table takes a weaker lock than creating a partition.
 */
export async function createPartition(
  session: PartitionSession,
  table: TimedTable,
  { partition, standard }: Creation,
): Promise<number> {
  const name = nameOf(partition);
  const parent = nameOf(table);
  return session.transact(async (tx) => {
    await tx.exec(LOCK_TIMEOUT);
    for (const statement of table.preparing ?? []) await tx.exec(statement);
    await createApart(tx, table, partition);
    let moved = 0;
    if (standard) {
      const columns = verbatim(await columnsOf(tx, table));
      const source = verbatim(nameOf(standard));
      const [from, to] = [partition.fromMs, partition.toMs].map((at) => verbatim(timeText(table, at)));
      const column = verbatim(quoteIdentifier(table.column));
      const move = async (): Promise<void> => {
        const [row] = await tx.run(sql`
          WITH moved AS (DELETE FROM ${source} WHERE ${column} >= ${from} AND ${column} < ${to} RETURNING ${columns}),
          added AS (INSERT INTO ${verbatim(name)} (${columns}) SELECT ${columns} FROM moved RETURNING 1)
          SELECT COUNT(*) AS count FROM added`);
        moved += Number(row?.['count']);
      };
      // Most of the work needs no lock; only what was added meanwhile has to wait for one.
      await move();
      await tx.exec(`LOCK TABLE ${nameOf(standard)} IN SHARE ROW EXCLUSIVE MODE`);
      await move();
    }
    await tx.exec(`ALTER TABLE ${parent} ATTACH PARTITION ${name} ${rangeText(table, partition)}`);
    return moved;
  });
}

/** Creates a table that can be attached as a partition. */
export async function createApart(
  tx: PartitionTransaction,
  table: TimedTable,
  partition: TableName,
  { isIndexed = false } = {},
): Promise<void> {
  const indexes = isIndexed ? ' INCLUDING INDEXES' : '';
  await tx.exec(
    `CREATE TABLE ${nameOf(partition)} (LIKE ${nameOf(table)} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE${indexes})`,
  );
  for (const statement of table.completing?.(partition) ?? []) await tx.exec(statement);
}

/** The columns of the table, for a statement. */
export async function columnsOf(tx: Runner, table: TableName): Promise<string> {
  const rows = await tx.run(sql`
    SELECT a.attname::text AS name
    FROM pg_catalog.pg_attribute AS a
    WHERE a.attrelid = ${regclassOf(table)} AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    ORDER BY a.attnum`);
  return rows.map((row) => quoteIdentifier(String(row['name']))).join(', ');
}

/**
 * Takes a partition out of the table unless it is out already, and drops it. Concurrently where that is possible: Postgres
 * refuses it inside a transaction, and while there is a default partition.
 */
export async function detachPartition(
  session: PartitionSession,
  table: TimedTable,
  {
    partition,
    hasDefault,
    isDropped,
  }: { readonly partition: Partition; readonly hasDefault: boolean; readonly isDropped: boolean },
): Promise<void> {
  const name = nameOf(partition);
  const detach = `ALTER TABLE ${nameOf(table)} DETACH PARTITION ${name}`;
  if (partition.isDetaching) {
    if (isDropped) await session.exec(`DROP TABLE ${name}`);
    return;
  }
  if (session.isFree && !hasDefault) {
    if (isDropped) await session.exec(`COMMENT ON TABLE ${name} IS ${literal(expiredMark(table))}`);
    await session.exec(`${detach} CONCURRENTLY`);
    if (isDropped) await session.exec(`DROP TABLE ${name}`);
    return;
  }
  await session.transact(async (tx) => {
    await tx.exec(LOCK_TIMEOUT);
    await tx.exec(detach);
    if (isDropped) await tx.exec(`DROP TABLE ${name}`);
  });
}

/** Postgres detaches one partition at a time, so one that was interrupted comes first. */
export async function finalizeDetaching(
  session: PartitionSession,
  table: TimedTable,
  partitions: readonly Partition[],
): Promise<void> {
  for (const partition of partitions) {
    if (!partition.isDetaching) continue;
    await session.exec(`ALTER TABLE ${nameOf(table)} DETACH PARTITION ${nameOf(partition)} FINALIZE`);
  }
}
