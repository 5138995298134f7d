// The partitions of a table of dead letters: what there is, and the statements that change it.
import { quoteIdentifier, sql } from '../../sql/sql.js';
import type { Transaction } from '../database.js';
import { qualifiedName } from '../schema/ddl.js';
import type { DlqTable, TableDeclaration } from '../schema/tables.js';
import { milliseconds, text } from '../tokens.js';
import { regclass } from '../validate/catalogue.js';
import type { Range } from './periods.js';
import type { Session } from './session.js';

export interface Partition extends Range {
  readonly tableName: string;
  readonly schema: string;
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

type Runner = Pick<Session | Transaction, 'run'>;

/** Undefined if the table does not exist. */
export async function readPartitions(session: Runner, dlq: TableDeclaration): Promise<LivePartitions | undefined> {
  const [table] = await session.run(sql`
    SELECT c.relkind::text AS kind, n.nspname::text AS schema, ${milliseconds('clock_timestamp()')} AS now_ms
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = ${regclass(dlq)}`);
  if (!table) return undefined;
  const schema = String(table['schema']);
  const bound = (word: string) =>
    `(substring(pg_get_expr(c.relpartbound, c.oid) FROM '${word} \\(''([^'']+)''\\)')::timestamptz)`;
  const rows = await session.run(sql`
    SELECT c.relname::text AS name, n.nspname::text AS schema, pg_get_expr(c.relpartbound, c.oid) = 'DEFAULT' AS is_default,
      COALESCE((to_jsonb(i) ->> 'inhdetachpending')::boolean, FALSE) AS is_detaching,
      ${milliseconds(bound('FROM'))} AS from_ms, ${milliseconds(bound('TO'))} AS to_ms
    FROM pg_catalog.pg_inherits AS i
    JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE i.inhparent = ${regclass(dlq)}
    ORDER BY 5 NULLS FIRST`);
  const leftOver = await session.run(sql`
    SELECT c.relname::text AS name, n.nspname::text AS schema
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    JOIN pg_catalog.pg_description AS d ON d.objoid = c.oid AND d.classoid = 'pg_class'::regclass AND d.objsubid = 0
    WHERE NOT c.relispartition AND c.relkind = 'r' AND d.description = ${text(expiredMark({ ...dlq, schema }))}`);
  return {
    nowMs: Number(table['now_ms']),
    isPartitioned: table['kind'] === 'p',
    schema,
    partitions: rows.map((row) => ({
      tableName: String(row['name']),
      schema: String(row['schema']),
      isDefault: row['is_default'] === true,
      isDetaching: row['is_detaching'] === true,
      // A bound that is not a time is MINVALUE or MAXVALUE.
      fromMs: row['from_ms'] == null ? -Infinity : Number(row['from_ms']),
      toMs: row['to_ms'] == null ? Infinity : Number(row['to_ms']),
    })),
    leftOver: leftOver.map((row) => ({ tableName: String(row['name']), schema: String(row['schema']) })),
  };
}

/** The comment on a partition that is about to be dropped, so that it is found after a crash in between. */
function expiredMark(dlq: TableDeclaration): string {
  return `everstep: expired partition of ${qualifiedName(dlq)}`;
}

function literal(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

/** How long a change of partitions waits for a lock. Statements of the application queue up behind it. */
const LOCK_TIMEOUT = `SET LOCAL lock_timeout = '5s'`;

export interface NewPartition extends Range {
  readonly tableName: string;
  readonly schema: string;
}

/** Creates an empty partition. */
export function partitionText(parent: Pick<TableDeclaration, 'tableName' | 'schema'>, partition: NewPartition): string {
  const [from, to] = [partition.fromMs, partition.toMs].map((at) => literal(new Date(at).toISOString()));
  return `CREATE TABLE ${qualifiedName(partition)} PARTITION OF ${qualifiedName(parent)} FOR VALUES FROM (${from}) TO (${to})`;
}

/**
 * Creates a partition, with the rows of its range that are in the default partition. Attaching a table takes a weaker lock
 * than creating a partition.
 */
export async function createPartition(
  session: Session,
  dlq: DlqTable,
  { partition, standard }: { readonly partition: NewPartition; readonly standard: Partition | undefined },
): Promise<number> {
  const name = qualifiedName(partition);
  const parent = qualifiedName(dlq);
  const [from, to] = [partition.fromMs, partition.toMs].map((at) => literal(new Date(at).toISOString()));
  return session.transact(async (tx) => {
    await tx.exec(LOCK_TIMEOUT);
    await tx.exec(`CREATE TABLE ${name} (LIKE ${parent} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)`);
    let moved = 0;
    if (standard) {
      const source = qualifiedName(standard);
      const columns = await columnsOf(tx, dlq);
      const move = async (): Promise<void> => {
        const [row] = await tx.exec(`
          WITH moved AS (DELETE FROM ${source} WHERE failed_at >= ${from} AND failed_at < ${to} RETURNING ${columns}),
          added AS (INSERT INTO ${name} (${columns}) SELECT ${columns} FROM moved RETURNING 1)
          SELECT COUNT(*) AS count FROM added`);
        moved += Number(row?.['count']);
      };
      // Most of the work needs no lock; only what was added meanwhile has to wait for one.
      await move();
      await tx.exec(`LOCK TABLE ${source} IN SHARE ROW EXCLUSIVE MODE`);
      await move();
    }
    await tx.exec(`ALTER TABLE ${parent} ATTACH PARTITION ${name} FOR VALUES FROM (${from}) TO (${to})`);
    return moved;
  });
}

/** The columns of the table, for a statement. */
export async function columnsOf(tx: Pick<Transaction, 'run'>, dlq: TableDeclaration): Promise<string> {
  const rows = await tx.run(sql`
    SELECT a.attname::text AS name
    FROM pg_catalog.pg_attribute AS a
    WHERE a.attrelid = ${regclass(dlq)} AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    ORDER BY a.attnum`);
  return rows.map((row) => quoteIdentifier(String(row['name']))).join(', ');
}

/**
 * Takes a partition out of the table unless it is out already, and drops it. Concurrently where that is possible: Postgres refuses it inside a
 * transaction, and while there is a default partition.
 */
export async function detachPartition(
  session: Session,
  dlq: DlqTable,
  {
    partition,
    hasDefault,
    isDropped,
  }: { readonly partition: Partition; readonly hasDefault: boolean; readonly isDropped: boolean },
): Promise<void> {
  const name = qualifiedName(partition);
  const detach = `ALTER TABLE ${qualifiedName(dlq)} DETACH PARTITION ${name}`;
  if (partition.isDetaching) {
    if (isDropped) await session.exec(`DROP TABLE ${name}`);
    return;
  }
  if (session.isFree && !hasDefault) {
    if (isDropped) await session.exec(`COMMENT ON TABLE ${name} IS ${literal(expiredMark(dlq))}`);
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
