// Queue statistics.
import { nowMs, oneOf, sql, table } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';
import { isEnqueued, isInFlight } from '../../run/rows/states.js';

export interface QueueStats {
  readonly queueName: string;
  /** The partition, if counted by partition. */
  readonly partitionKey?: string | null;
  /** Workflows ready to be claimed. */
  readonly enqueued: number;
  /** Workflows that are delayed. */
  readonly delayed: number;
  /** Workflows that were claimed and have not ended. */
  readonly running: number;
  /** How long the oldest enqueued workflow has been waiting; null if there is none. */
  readonly oldestWaitMs: number | null;
}

export interface QueueStatsOptions {
  /** All queues if undefined. */
  readonly queueNames?: readonly string[];
  readonly isByPartition: boolean;
  /** Counts the workflows of this application and those without one. */
  readonly applicationName: string | null;
}

const workflows = table('workflow_status');

export async function countQueues(database: Database, options: QueueStatsOptions): Promise<QueueStats[]> {
  const { queueNames, isByPartition, applicationName } = options;
  const inApplication =
    applicationName === null ? sql`` : sql`AND (w.application_name = ${applicationName} OR w.application_name IS NULL)`;
  const scope = sql`w.queue_name ${queueNames ? oneOf(queueNames) : sql`IS NOT NULL`} ${inApplication}`;
  const partition = isByPartition ? sql`w.queue_partition_key` : sql`NULL`;
  // Each branch uses a partial index of active workflows, so its cost does not depend on how many have ended.
  const counted = await database.read(sql`
    SELECT a.queue_name, a.partition_key,
      SUM(CASE WHEN a.status = 'ENQUEUED' THEN 1 ELSE 0 END) AS enqueued,
      SUM(CASE WHEN a.status = 'DELAYED' THEN 1 ELSE 0 END) AS delayed,
      SUM(CASE WHEN a.status = 'PENDING' THEN 1 ELSE 0 END) AS running,
      ${nowMs} - MIN(CASE WHEN a.status = 'ENQUEUED' THEN a.since END) AS oldest
    FROM (
      SELECT w.queue_name, ${partition} AS partition_key, w.status,
        CASE WHEN w.delay_until_epoch_ms > w.created_at THEN w.delay_until_epoch_ms ELSE w.created_at END AS since
      FROM ${workflows} AS w
      WHERE ${isInFlight('w')} AND ${scope}
      UNION ALL
      SELECT w.queue_name, ${partition} AS partition_key, w.status, w.created_at AS since
      FROM ${workflows} AS w
      WHERE w.status = 'DELAYED' AND ${scope}) AS a
    GROUP BY a.queue_name, a.partition_key
    ORDER BY a.queue_name, a.partition_key`);
  return counted.map((row) => ({
    queueName: row['queue_name'] as string,
    ...(isByPartition && { partitionKey: row['partition_key'] as string | null }),
    enqueued: Number(row['enqueued']),
    delayed: Number(row['delayed']),
    running: Number(row['running']),
    oldestWaitMs: row['oldest'] === null ? null : Math.max(0, Number(row['oldest'])),
  }));
}

/** Running workflows that came from no queue. */
export async function countUnqueued(database: Database, applicationName: string | null): Promise<number> {
  const inApplication =
    applicationName === null ? sql`` : sql`AND (w.application_name = ${applicationName} OR w.application_name IS NULL)`;
  // Uses idx_workflow_status_in_flight_v2, for which SQLite needs its exact condition.
  const [row] = await database.read(sql`
    SELECT COUNT(*) AS running
    FROM ${workflows} AS w
    WHERE ${isInFlight('w')} AND w.queue_name IS NULL ${inApplication}`);
  return Number(row?.['running'] ?? 0);
}

/** How many workflows of the queue would be claimed before this one, counted up to `max`. */
export async function countAhead(database: Database, workflowID: string, max: number): Promise<number> {
  const [row] = await database.read(sql`
    SELECT COUNT(*) AS ahead
    FROM (
      SELECT 1
      FROM ${workflows} AS me
      JOIN ${workflows} AS w ON w.queue_name = me.queue_name AND ${isEnqueued('w')}
        AND COALESCE(w.queue_partition_key, '') = COALESCE(me.queue_partition_key, '')
        AND (w.priority, w.created_at, COALESCE(w.creator_xid, ''), w.workflow_uuid)
          < (me.priority, me.created_at, COALESCE(me.creator_xid, ''), me.workflow_uuid)
      WHERE me.workflow_uuid = ${workflowID}
      LIMIT ${max}) AS others`);
  return Number(row?.['ahead'] ?? 0);
}

/** How many workflows are enqueued, counted up to `max`. */
export async function countWaiting(database: Database, queueName: string, max: number): Promise<number> {
  // Uses idx_workflow_status_in_flight_v2.
  const [row] = await database.read(sql`
    SELECT COUNT(*) AS waiting
    FROM (
      SELECT 1
      FROM ${workflows} AS w
      WHERE w.queue_name = ${queueName} AND ${isEnqueued('w')}
      LIMIT ${max}) AS counted`);
  return Number(row?.['waiting'] ?? 0);
}
