// How full the queues are.
import { nowMs, oneOf, sql, table } from '../../sql/sql.js';
import type { Database } from '../database.js';
import { isEnqueued, isInFlight } from '../runs/states.js';

export interface QueueStats {
  readonly queueName: string;
  /** The partition that is counted; absent where the whole queue is. */
  readonly partitionKey?: string | null;
  /** Workflows that wait to be taken. */
  readonly enqueued: number;
  /** Workflows that wait for their time. */
  readonly delayed: number;
  /** Workflows that were taken and have not ended. */
  readonly running: number;
  /** How long the first in line has been waiting; null if nobody waits. */
  readonly oldestWaitMs: number | null;
}

export interface QueueStatsOptions {
  /** Undefined counts all queues. */
  readonly queueNames?: readonly string[];
  readonly isByPartition: boolean;
  /** Counts the workflows of this application and those that nobody owns. */
  readonly applicationName: string | null;
}

const workflows = table('workflow_status');

export async function countQueues(database: Database, options: QueueStatsOptions): Promise<QueueStats[]> {
  const { queueNames, isByPartition, applicationName } = options;
  const inApplication =
    applicationName === null ? sql`` : sql`AND (w.application_name = ${applicationName} OR w.application_name IS NULL)`;
  const scope = sql`w.queue_name ${queueNames ? oneOf(queueNames) : sql`IS NOT NULL`} ${inApplication}`;
  const partition = isByPartition ? sql`w.queue_partition_key` : sql`NULL`;
  // Each branch rides a partial index that holds the active workflows alone, however many have ended.
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

/** Workflows that run and came from no queue. */
export async function countUnqueued(database: Database, applicationName: string | null): Promise<number> {
  const inApplication =
    applicationName === null ? sql`` : sql`AND (w.application_name = ${applicationName} OR w.application_name IS NULL)`;
  // Rides idx_workflow_status_in_flight_v2; SQLite wants its condition in the same words.
  const [row] = await database.read(sql`
    SELECT COUNT(*) AS running
    FROM ${workflows} AS w
    WHERE ${isInFlight('w')} AND w.queue_name IS NULL ${inApplication}`);
  return Number(row?.['running'] ?? 0);
}

/** How many workflows of the queue would be taken before this one, counted up to `max`. */
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

/** How many workflows wait in the queue, counted up to `max`. */
export async function countWaiting(database: Database, queueName: string, max: number): Promise<number> {
  // Rides idx_workflow_status_in_flight_v2.
  const [row] = await database.read(sql`
    SELECT COUNT(*) AS waiting
    FROM (
      SELECT 1
      FROM ${workflows} AS w
      WHERE w.queue_name = ${queueName} AND ${isEnqueued('w')}
      LIMIT ${max}) AS counted`);
  return Number(row?.['waiting'] ?? 0);
}
