// Queue statistics.
import { nowMs, oneOf, sql, table } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';
import { isParkedWithoutQueue, storedState } from '../parking/parked.sql.js';
import { isEnqueued, isInFlight } from '../../run/rows/states.js';

export interface QueueStats {
  readonly queueName: string;
  /** The partition, if counted by partition. */
  readonly partitionKey?: string | null;
  /** Workflows ready to be claimed. */
  readonly enqueued: number;
  /** Workflows that are delayed. */
  readonly delayed: number;
  /** Workflows that were claimed, have not ended and are not parked. */
  readonly running: number;
  /** Workflows that have started and are parked, out of memory, until something comes. */
  readonly parked: number;
  /** How long the oldest enqueued workflow has been waiting; null if there is none. */
  readonly oldestWaitMs: number | null;
}

/** Of a queue without workflows. */
export const NO_WORK = { enqueued: 0, delayed: 0, running: 0, parked: 0, oldestWaitMs: null } as const;

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
      SUM(CASE WHEN a.status = 'PARKED' THEN 1 ELSE 0 END) AS parked,
      ${nowMs} - MIN(CASE WHEN a.status = 'ENQUEUED' THEN a.since END) AS oldest
    FROM (
      SELECT w.queue_name, ${partition} AS partition_key, w.status,
        CASE WHEN w.delay_until_epoch_ms > w.created_at THEN w.delay_until_epoch_ms ELSE w.created_at END AS since
      FROM ${workflows} AS w
      WHERE ${isInFlight('w')} AND ${scope}
      UNION ALL
      SELECT w.queue_name, ${partition} AS partition_key, ${storedState('w')} AS status, w.created_at AS since
      FROM ${workflows} AS w
      WHERE w.status = 'DELAYED' AND ${scope} AND NOT ${isParkedWithoutQueue('w')}) AS a
    GROUP BY a.queue_name, a.partition_key
    ORDER BY a.queue_name, a.partition_key`);
  return counted.map((row) => ({
    queueName: row['queue_name'] as string,
    ...(isByPartition && { partitionKey: row['partition_key'] as string | null }),
    enqueued: Number(row['enqueued']),
    delayed: Number(row['delayed']),
    running: Number(row['running']),
    parked: Number(row['parked']),
    oldestWaitMs: row['oldest'] === null ? null : Math.max(0, Number(row['oldest'])),
  }));
}

/** Workflows that have started and came from no queue. */
export interface UnqueuedCounts {
  readonly running: number;
  readonly parked: number;
}

export async function countUnqueued(database: Database, applicationName: string | null): Promise<UnqueuedCounts> {
  const inApplication =
    applicationName === null ? sql`` : sql`AND (w.application_name = ${applicationName} OR w.application_name IS NULL)`;
  // Uses idx_workflow_status_in_flight_v2, for which SQLite needs its exact condition, and idx_workflow_status_delayed.
  const [row] = await database.read(sql`
    SELECT (
      SELECT COUNT(*) FROM ${workflows} AS w WHERE ${isInFlight('w')} AND w.queue_name IS NULL ${inApplication}
    ) AS running, (
      SELECT COUNT(*)
      FROM ${workflows} AS w
      WHERE w.status = 'DELAYED' AND ${isParkedWithoutQueue('w')} ${inApplication}
    ) AS parked`);
  return { running: Number(row?.['running'] ?? 0), parked: Number(row?.['parked'] ?? 0) };
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
