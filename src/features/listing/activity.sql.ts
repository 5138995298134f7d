// How many workflows were created, started and ended over time. Each statement reads a range of one index.
import type { WorkflowStatusString } from '../../kernel/workflow/status.js';
import { type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';
import { INTERNAL_QUEUE } from '../queue/queue.js';

export interface ActivityRange {
  readonly from: number;
  readonly before: number;
  readonly bucketMs: number;
  /** Counts the workflows of this application and those without one; null counts all. */
  readonly applicationName: string | null;
  readonly timeoutMs: number;
}

/** `at` is the time at which a bucket begins. */
export interface CreatedCount {
  readonly at: number;
  readonly created: number;
  /** How many of them were enqueued. */
  readonly enqueued: number;
}

export interface StartedCount {
  readonly at: number;
  /** How many were claimed from a queue. */
  readonly claimed: number;
  /** How long the one that waited longest had waited. */
  readonly longestWaitMs: number | null;
}

export interface EndedCount {
  readonly at: number;
  readonly status: WorkflowStatusString;
  /** The class of durations, as in `DURATION_CLASSES`. */
  readonly durationClass: number;
  readonly ended: number;
}

const FACTORS = [1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6.5, 8];
const POWERS = [10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/** The upper ends of the classes of durations, in ms: so many that percentiles are exact to a tenth or so. */
export const DURATION_CLASSES: readonly number[] = [
  ...[0, 1, 2, 3, 4, 5, 7],
  ...POWERS.flatMap((power) => FACTORS.map((factor) => Math.round(factor * power))),
];

const workflows = table('workflow_status');
/**
 * It was created on a queue. A workflow without one comes to the internal queue when it is parked, recovered or resumed, long
 * after it has started.
 */
const isQueued = sql`w.queue_name IS NOT NULL AND (w.queue_name <> ${INTERNAL_QUEUE} OR w.schedule_name IS NOT NULL)`;

/** Uses workflow_status_created_at_index. */
export async function countCreated(database: Database, range: ActivityRange): Promise<CreatedCount[]> {
  const time = sql`w.created_at`;
  const found = await database.observe(
    sql`
      SELECT ${bucketOf(time, range)} AS bucket, COUNT(*) AS created,
        SUM(CASE WHEN ${isQueued} THEN 1 ELSE 0 END) AS enqueued
      FROM ${workflows} AS w
      WHERE ${isWithin(time, range)}
      GROUP BY 1`,
    { timeoutMs: range.timeoutMs, scans: 'index' },
  );
  return found.map((row) => ({
    at: Number(row['bucket']),
    created: Number(row['created']),
    enqueued: Number(row['enqueued']),
  }));
}

/** Uses idx_workflow_status_started_at. */
export async function countStarted(database: Database, range: ActivityRange): Promise<StartedCount[]> {
  const time = sql`w.started_at_epoch_ms`;
  const found = await database.observe(
    sql`
      SELECT ${bucketOf(time, range)} AS bucket, SUM(CASE WHEN ${isQueued} THEN 1 ELSE 0 END) AS claimed,
        MAX(CASE WHEN ${isQueued} THEN ${between(sql`w.created_at`, sql`w.started_at_epoch_ms`)} END) AS wait
      FROM ${workflows} AS w
      WHERE ${time} IS NOT NULL AND ${isWithin(time, range)}
      GROUP BY 1`,
    { timeoutMs: range.timeoutMs, scans: 'index' },
  );
  return found.map((row) => ({
    at: Number(row['bucket']),
    claimed: Number(row['claimed']),
    longestWaitMs: row['wait'] === null ? null : Math.max(0, Number(row['wait'])),
  }));
}

/** Uses idx_workflow_status_completed_at. */
export async function countEnded(database: Database, range: ActivityRange): Promise<EndedCount[]> {
  const time = sql`w.completed_at`;
  const duration = between(sql`COALESCE(w.started_at_epoch_ms, w.created_at)`, time);
  const found = await database.observe(
    sql`
      SELECT ${bucketOf(time, range)} AS bucket, w.status, ${classOf(duration)} AS class, COUNT(*) AS ended
      FROM ${workflows} AS w
      WHERE ${time} IS NOT NULL AND ${isWithin(time, range)}
      GROUP BY 1, 2, 3`,
    { timeoutMs: range.timeoutMs, scans: 'index' },
  );
  return found.map((row) => ({
    at: Number(row['bucket']),
    status: row['status'] as WorkflowStatusString,
    durationClass: Number(row['class']),
    ended: Number(row['ended']),
  }));
}

/** How long it took. Not in integers: the times of one damaged row would be out of range, and fail the query. */
export function between(from: Sql, to: Sql): Sql {
  return sql`(CAST(${to} AS DOUBLE PRECISION) - ${from})`;
}

function bucketOf(time: Sql, { bucketMs }: ActivityRange): Sql {
  const size = sql`CAST(${bucketMs} AS BIGINT)`;
  return sql`${time} / ${size} * ${size}`;
}

function isWithin(time: Sql, { from, before, applicationName }: ActivityRange): Sql {
  const within = sql`${time} >= CAST(${from} AS BIGINT) AND ${time} < CAST(${before} AS BIGINT)`;
  return applicationName === null
    ? within
    : sql`${within} AND (w.application_name = ${applicationName} OR w.application_name IS NULL)`;
}

/** The number of the first class that is not shorter. A binary search: a day may have a million durations. */
function classOf(duration: Sql, first = 0, last = DURATION_CLASSES.length): Sql {
  if (first === last) return sql`CAST(${first} AS INTEGER)`;
  const middle = Math.floor((first + last) / 2);
  return sql`
    CASE WHEN ${duration} <= CAST(${DURATION_CLASSES[middle] ?? 0} AS BIGINT)
      THEN ${classOf(duration, first, middle)} ELSE ${classOf(duration, middle + 1, last)} END`;
}
