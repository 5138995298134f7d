// The headroom that a queue's limits leave, as parts of claim statements.
import { type Limits, UNLIMITED } from './queue.js';
import { nowMs, searchableNowMs, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Row } from '../../database/database.js';
import { holdsDivergedToken, isOwnedWith } from '../../run/rows/owner-tokens.js';
import { isEnqueued, isInFlight } from '../../run/rows/states.js';

const workflows = table('workflow_status');
/** Running workflows counted to compute a share. With more, every engine has work anyway. */
const SHARED_MAX = 10_000;

/** A queue or one of its partitions, with the limits that apply across processes. */
export interface Scope {
  readonly queueName: string;
  readonly whole: Limits;
  readonly partition?: { readonly key: string; readonly limits: Limits };
}

export function isUnlimited({ whole, partition }: Scope): boolean {
  return whole.concurrency === null && whole.rate === null && !partition;
}

/** How many engines serve the queue, and how many of its workflows run here. */
export interface Share {
  readonly engines: number;
  readonly running: number;
}

/** The state of the queue after a claim. */
export interface ClaimRemainder {
  /** Whether workflows are waiting, for any engine. */
  readonly isWaiting: boolean;
  /** Whether the queue's limits allow one more to start. */
  readonly hasRoom: boolean;
  /** Time until the queue's rate limit allows another start; null if it is not exhausted. */
  readonly waitMs: number | null;
  /** The same two for the partition's limits. */
  readonly hasPartitionRoom: boolean;
  readonly partitionWaitMs: number | null;
  /** Work of other programs that waits as well, as of before the claim. */
  readonly others?: OthersWork | undefined;
}

export interface OthersWork {
  /** How many workflows engines may start before it is the turn of other programs; null if that is not counted. */
  readonly spare: number | null;
}

export function inPartition({ partition }: Scope): Sql {
  if (!partition) return sql``;
  return sql`AND p.queue_partition_key = ${partition.key} AND p.queue_partition_key IS NOT NULL`;
}

interface ClaimBounds {
  readonly limit: number;
  readonly share: Share | undefined;
  /** Others. NULL is none. */
  readonly bounds?: readonly Sql[];
}

/** The smallest bound on this claim, at least 0. */
export function effectiveLimit(scope: Scope, { limit, share, bounds: others = [] }: ClaimBounds): Sql {
  const bounds = [...headroom(scope), ...others];
  if (share) bounds.push(shareOf(limit, scope, share));
  if (bounds.length === 0) return sql`CAST(${limit} AS BIGINT)`;
  return sql`(
    SELECT CASE WHEN MIN(r.n) > 0 THEN MIN(r.n) ELSE 0 END
    FROM (SELECT CAST(${limit} AS BIGINT) AS n ${unionOf(bounds)}) AS r)`;
}

/**
 * Notes the queue's headroom for the claims from its partitions that follow in the commit. A slot that is freed between two
 * of them is for the next commit, or the later partition would get it before the earlier one. For servers with settings.
 */
export function noteHeadroom({ queueName, whole }: Scope, limit: number, bounds: readonly Sql[]): Sql {
  const noted = effectiveLimit({ queueName, whole }, { limit, share: undefined, bounds });
  return sql`SELECT set_config('everstep.headroom', CAST(${noted} AS TEXT), TRUE) AS headroom`;
}

/** What is left of the noted headroom after what this commit has claimed. */
export function notedHeadroom(owner: string): Sql {
  return sql`CAST(current_setting('everstep.headroom') AS BIGINT)
    - (SELECT COUNT(*) FROM ${workflows} WHERE ${isOwnedWith(owner)})`;
}

function unionOf(bounds: readonly Sql[]): Sql {
  return bounds.reduce((all, bound) => sql`${all} UNION ALL SELECT ${bound}`, sql``);
}

function headroom(scope: Scope): Sql[] {
  return [...queueHeadroom(scope), ...partitionHeadroom(scope)];
}

/** The headroom of each of the queue's own limits. */
function queueHeadroom({ queueName, whole }: Scope): Sql[] {
  return headroomWithin({ queueName, whole }, whole);
}

function partitionHeadroom(scope: Scope): Sql[] {
  return headroomWithin(scope, scope.partition?.limits ?? UNLIMITED);
}

function headroomWithin(scope: Scope, { concurrency, rate }: Limits): Sql[] {
  const bounds: Sql[] = [];
  if (concurrency !== null) bounds.push(sql`${concurrency} - ${countOf('PENDING', scope, concurrency)}`);
  if (rate !== null) bounds.push(sql`${rate.max} - ${startsOf(scope, rate)}`);
  return bounds;
}

/** Whether more workflows wait than may start. */
export function isScarce(scope: Scope): Sql {
  const limits = [scope.whole, scope.partition?.limits ?? UNLIMITED];
  const most = Math.min(...limits.flatMap(({ concurrency, rate }) => [concurrency ?? Infinity, rate?.max ?? Infinity]));
  if (most === Infinity) return sql`FALSE`;
  const room = sql`(SELECT MIN(r.n) FROM (SELECT ${most} AS n ${unionOf(headroom(scope))}) AS r)`;
  return sql`${countOf('ENQUEUED', scope, most + 1)} > ${room}`;
}

/** The number of rows in a state, counted up to `max`. */
function countOf(status: 'PENDING' | 'ENQUEUED', scope: Scope, max: number): Sql {
  return sql`(
    SELECT COUNT(*)
    FROM (
      SELECT 1
      FROM ${workflows} AS p
      WHERE p.queue_name = ${scope.queueName} AND ${status === 'ENQUEUED' ? isEnqueued('p') : isRunning}
        ${inPartition(scope)}
      LIMIT ${max}) AS counted)`;
}

/** How many workflows of a queue run, counted up to what a share is computed from. */
export function runningStatement(queueName: string): Sql {
  return sql`SELECT ${countOf('PENDING', { queueName, whole: UNLIMITED }, SHARED_MAX)} AS n`;
}

/** Running. The subquery keeps Postgres from using the index of all running workflows, which does not have the queue. */
const isRunning = sql`
  p.status = (SELECT 'PENDING') AND ${isInFlight('p')} AND NOT ${holdsDivergedToken(sql`COALESCE(p.owner_xid, '')`)}`;

type Rate = NonNullable<Limits['rate']>;

/**
 * How far the clocks of a database's servers may be apart. Starts that lie further ahead are from before the clock was set
 * back: with them, a limit would allow none until the clock is there again.
 */
const AHEAD_MAX_MS = 1000;

/** The latest starts within the period. Uses idx_workflow_status_rate_limited. */
function latestStarts(scope: Scope, rate: Rate): Sql {
  return sql`
    SELECT p.started_at_epoch_ms AS at
    FROM ${workflows} AS p
    WHERE p.queue_name = ${scope.queueName} AND p.rate_limited = TRUE
      AND p.started_at_epoch_ms > ${searchableNowMs} - CAST(${rate.periodMs} AS BIGINT)
      AND p.started_at_epoch_ms <= ${searchableNowMs} + CAST(${AHEAD_MAX_MS} AS BIGINT) ${inPartition(scope)}
    ORDER BY p.started_at_epoch_ms DESC
    LIMIT ${rate.max}`;
}

function startsOf(scope: Scope, rate: Rate): Sql {
  return sql`(SELECT COUNT(*) FROM (${latestStarts(scope, rate)}) AS started)`;
}

/** An even share of what may run, less what runs here. If there is enough for all engines, no one holds back. */
function shareOf(limit: number, scope: Scope, { engines, running }: Share): Sql {
  const enough = limit * engines;
  const { concurrency } = scope.whole;
  // However much waits, the queue's slots may not be enough.
  const isScarce = concurrency !== null && concurrency < enough;
  const waiting = countOf('ENQUEUED', scope, isScarce ? concurrency : enough);
  const all = sql`${waiting} + ${countOf('PENDING', scope, SHARED_MAX)}`;
  // SQLite binds numbers as floats, but this must be an integer division.
  const whole = (value: number): Sql => sql`CAST(${value} AS BIGINT)`;
  const share = sql`(
    SELECT (MIN(s.n) + ${whole(engines - 1)}) / ${whole(engines)} - ${whole(running)}
    FROM (SELECT ${all} AS n UNION ALL SELECT ${whole(concurrency ?? SHARED_MAX)}) AS s)`;
  return isScarce ? share : sql`CASE WHEN ${waiting} >= ${enough} THEN ${whole(limit)} ELSE ${share} END`;
}

/** `others`: further columns, about other programs. */
export function remainderStatement(scope: Scope, others: Sql = sql`0 AS is_contended`): Sql {
  const { queueName, whole, partition } = scope;
  return sql`
    SELECT ${others},
      CASE WHEN EXISTS (
        SELECT 1 FROM ${workflows} AS p WHERE p.queue_name = ${queueName} AND ${isEnqueued('p')} ${inPartition(scope)}
      ) THEN 1 ELSE 0 END AS is_waiting,
      ${hasRoom(queueHeadroom(scope))} AS has_room,
      ${hasRoom(partitionHeadroom(scope))} AS has_partition_room,
      ${waitOf({ queueName, whole }, whole.rate)} AS wait_ms,
      ${waitOf(scope, partition?.limits.rate ?? null)} AS partition_wait_ms`;
}

function hasRoom(bounds: readonly Sql[]): Sql {
  if (bounds.length === 0) return sql`1`;
  return sql`(SELECT CASE WHEN MIN(r.n) > 0 THEN 1 ELSE 0 END FROM (SELECT 1 AS n ${unionOf(bounds)}) AS r)`;
}

/** Time until the oldest of the starts that fill the period leaves it. */
function waitOf(scope: Scope, rate: Rate | null): Sql {
  if (rate === null) return sql`NULL`;
  return sql`(
    SELECT CASE WHEN COUNT(*) >= ${rate.max} THEN MIN(started.at) + ${rate.periodMs} - ${nowMs} END
    FROM (${latestStarts(scope, rate)}) AS started)`;
}

export function toRemainder(row: Row | undefined): ClaimRemainder {
  return {
    isWaiting: row?.['is_waiting'] === 1,
    hasRoom: row?.['has_room'] === 1,
    waitMs: toWait(row?.['wait_ms']),
    hasPartitionRoom: row?.['has_partition_room'] === 1,
    partitionWaitMs: toWait(row?.['partition_wait_ms']),
    others: toOthersWork(row),
  };
}

export function toOthersWork(row: Row | undefined): OthersWork | undefined {
  if (row?.['is_contended'] !== 1) return undefined;
  return { spare: row['spare'] === null ? null : Number(row['spare']) };
}

function toWait(value: unknown): number | null {
  return value == null ? null : Math.max(0, Number(value));
}
