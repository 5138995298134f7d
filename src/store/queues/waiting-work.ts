// Queues and partitions with enqueued workflows.
import { rows, type Sql, sql, table } from '../../sql/sql.js';
import type { Database } from '../database.js';
import { isEnqueued } from '../runs/states.js';

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

/** The queues among these with enqueued workflows. */
export async function findWaitingQueues(database: Database, queueNames: readonly string[]): Promise<string[]> {
  const found = await database.read(sql`
    SELECT q.name
    FROM ${rows(
      'q',
      NAME_COLUMN,
      queueNames.map((name) => [name]),
    )}
    WHERE EXISTS (SELECT 1 FROM ${workflows} AS w WHERE w.queue_name = q.name AND ${isEnqueued('w')})`);
  return found.map((row) => row['name'] as string);
}

const NAME_COLUMN = [{ name: 'name', type: 'text' }] as const;
