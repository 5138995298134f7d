// Tables for the figures of claims: rows as workflows leave them, written by one statement for each kind.
import { quoteIdentifier, type Sql, sql, table } from '../../src/kernel/sql/sql.js';
import type { Database } from '../../src/database/database.js';

export const PLAIN = 'plain';
export const PARTITIONED = 'partitioned';
export const FUNCTION = 'job';
export const VERSION = 'bench';
export const APPLICATION = 'bench';
export const PARTITIONS = 1000;
/** Rows that are written by one statement. */
const CHUNK = 100_000;
const CREATED_AT = 1_700_000_000_000;

export interface TableSize {
  /** Rows that are there already. */
  readonly from: number;
  readonly completed: number;
  /** In each of the two queues. */
  readonly waiting: number;
}

/**
 * Fills a table that is new and large. SQLite gets its indexes afterwards, which is much faster and tells it no more
 * about its rows. Postgres would note the size of the table then, and gets them before.
 */
export async function fillLargeTable(database: Database, size: TableSize): Promise<void> {
  if (database.dialect.name === 'postgres') return fillTable(database, size);
  await database.run(sql`PRAGMA cache_size = -400000`);
  const indexes = await database.run(sql`
    SELECT m.name, m.sql
    FROM sqlite_master AS m
    WHERE m.type = 'index' AND m.tbl_name = 'workflow_status' AND m.sql IS NOT NULL
    ORDER BY m.rowid`);
  const scripts = (texts: readonly string[]) =>
    database.exclusive(async (connection) => {
      for (const text of texts) await connection.script(text);
    });
  await scripts(indexes.map(({ name }) => `DROP INDEX ${quoteIdentifier(name as string)}`));
  await fillTable(database, size);
  await scripts(indexes.map((index) => index['sql'] as string));
}

export async function fillTable(database: Database, size: TableSize): Promise<void> {
  const { completed, waiting } = size;
  let { from } = size;
  const write = async (count: number, rows: (numbers: Sql) => Sql): Promise<void> => {
    for (let done = 0; done < count; done += CHUNK) {
      const chunk = Math.min(CHUNK, count - done);
      await database.run(rows(series(database, from, chunk)));
      from += chunk;
    }
  };
  await write(completed, (numbers) => insert('SUCCESS', PLAIN, numbers));
  await write(waiting, (numbers) => insert('ENQUEUED', PLAIN, numbers));
  await write(waiting, (numbers) => insert('ENQUEUED', PARTITIONED, numbers));
}

/** Numbers from `from` on, in a column `n`. */
function series(database: Database, from: number, count: number): Sql {
  const first = sql`CAST(${from} AS BIGINT)`;
  const last = sql`CAST(${from + count - 1} AS BIGINT)`;
  if (database.dialect.name === 'postgres') return sql`SELECT n FROM generate_series(${first}, ${last}) AS n`;
  return sql`
    WITH RECURSIVE numbers(n) AS (SELECT ${first} UNION ALL SELECT n + 1 FROM numbers WHERE n < ${last})
    SELECT n FROM numbers`;
}

function insert(status: 'SUCCESS' | 'ENQUEUED', queueName: string, numbers: Sql): Sql {
  const isDone = status === 'SUCCESS';
  const partition =
    queueName === PARTITIONED ? sql`'p' || CAST(s.n % CAST(${PARTITIONS} AS BIGINT) AS TEXT)` : sql`CAST(NULL AS TEXT)`;
  // An ID that does not grow, as random ones do not: the number in hexadecimal digits would come in order.
  const id = sql`CAST((s.n * CAST(7919 AS BIGINT)) % CAST(10000019 AS BIGINT) AS TEXT) || '-0000-4000-8000-' || CAST(s.n AS TEXT)`;
  return sql`
    INSERT INTO ${table('workflow_status')} (
      workflow_uuid, status, name, inputs, output, serialization, executor_id, application_version, application_name,
      created_at, updated_at, started_at_epoch_ms, completed_at, queue_name, queue_partition_key, priority,
      recovery_attempts, owner_xid, creator_xid)
    SELECT ${id}, ${status}, ${FUNCTION}, '{"json":[1,2]}', CASE WHEN ${isDone} THEN '{"json":1}' END, 'js_superjson',
      CASE WHEN ${isDone} THEN 'local' END, ${VERSION}, ${APPLICATION},
      CAST(${CREATED_AT} AS BIGINT) + s.n, CAST(${CREATED_AT} AS BIGINT) + s.n,
      CASE WHEN ${isDone} THEN CAST(${CREATED_AT} AS BIGINT) + s.n END,
      CASE WHEN ${isDone} THEN CAST(${CREATED_AT} AS BIGINT) + s.n END,
      ${queueName}, ${partition}, 0, CASE WHEN ${isDone} THEN 1 ELSE 0 END,
      CASE WHEN ${isDone} THEN 'e.' || CAST(s.n AS TEXT) END, 'c.' || CAST(s.n AS TEXT)
    FROM (${numbers}) AS s`;
}
