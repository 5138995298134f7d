// Queues and partitions with enqueued workflows.
import { nowMs, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';
import { runningStatement } from './claim-limits.sql.js';
import { isEnqueued } from '../../run/rows/states.js';

const workflows = table('workflow_status');

/** Up to `limit` partitions with enqueued workflows after a key, by key. */
export async function findWaitingPartitions(
  database: Database,
  { queueName, after, limit }: { readonly queueName: string; readonly after: string; readonly limit: number },
): Promise<string[]> {
  // Skips from key to key in idx_workflow_status_partition_dequeue_v3.
  const found = await database.read(sql`
    WITH RECURSIVE keys(key, n) AS (
      SELECT (${nextKey(queueName, sql`${after}`)}), 1
      UNION ALL
      SELECT (${nextKey(queueName, sql`keys.key`)}), keys.n + 1
      FROM keys
      WHERE keys.key IS NOT NULL AND keys.n < ${limit}
    )
    SELECT keys.key FROM keys WHERE keys.key IS NOT NULL`);
  return found.map((row) => row['key'] as string);
}

function nextKey(queueName: string, after: Sql): Sql {
  return sql`
    SELECT w.queue_partition_key
    FROM ${workflows} AS w
    WHERE w.queue_name = ${queueName} AND ${isEnqueued('w')} AND w.queue_partition_key IS NOT NULL
      AND w.queue_partition_key > ${after}
    ORDER BY w.queue_partition_key
    LIMIT 1`;
}

/** How many workflows of a queue run, in all processes. Enough for shares: the count ends at 10,000. */
export async function countRunning(database: Database, queueName: string): Promise<number> {
  const [row] = await database.read(runningStatement(queueName));
  return Number(row?.['n'] ?? 0);
}

/** Up to `limit` queues with enqueued workflows, whether registered or not. */
export async function findQueuesInUse(database: Database, limit: number): Promise<string[]> {
  // Skips from name to name in idx_workflow_status_in_flight_v2.
  const found = await database.read(sql`
    WITH RECURSIVE names(name, n) AS (
      SELECT (${nextName(sql`''`)}), 1
      UNION ALL
      SELECT (${nextName(sql`names.name`)}), names.n + 1
      FROM names
      WHERE names.name IS NOT NULL AND names.n < ${limit}
    )
    SELECT names.name FROM names WHERE names.name IS NOT NULL`);
  return found.map((row) => row['name'] as string);
}

function nextName(after: Sql): Sql {
  return sql`
    SELECT w.queue_name
    FROM ${workflows} AS w
    WHERE w.queue_name > ${after} AND w.queue_name IS NOT NULL AND ${isEnqueued('w')}
    ORDER BY w.queue_name
    LIMIT 1`;
}

/** An enqueued workflow, and what a process needs to be able to claim it. */
export interface Waiting {
  readonly workflowID: string;
  readonly applicationName: string | null;
  readonly version: string | null;
  readonly className: string | null;
  readonly name: string;
  readonly format: string | null;
  readonly ageMs: number;
}

/** The first workflows of a queue, in the order in which they are claimed. */
export async function findFirstWaiting(database: Database, queueName: string, limit: number): Promise<Waiting[]> {
  const found = await database.read(sql`
    SELECT w.workflow_uuid, w.application_name, w.application_version, w.class_name, w.name, w.serialization, w.created_at, ${nowMs} AS now
    FROM ${workflows} AS w
    WHERE w.queue_name = ${queueName} AND ${isEnqueued('w')}
    ORDER BY w.priority, w.created_at
    LIMIT ${limit}`);
  return found.map((row) => ({
    workflowID: row['workflow_uuid'] as string,
    applicationName: row['application_name'] as string | null,
    version: row['application_version'] as string | null,
    className: row['class_name'] as string | null,
    name: row['name'] as string,
    format: row['serialization'] as string | null,
    ageMs: Number(row['now']) - Number(row['created_at']),
  }));
}
