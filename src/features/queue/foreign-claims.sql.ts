// Queues with limits from which other programs claim as well, such as DBOS in another language. They do not know the lock under
// which we claim, and count what runs in a snapshot. A trigger makes their claims take that lock, and refuses those that have
// counted before a claim of ours. For that, each claim of ours leaves a mark. Postgres only.
//
//   they claim, we come     our claim waits for the lock, and counts theirs
//   we claim, they come     theirs fails, and they try again
//   they count, we commit   theirs fails: the mark is newer than their snapshot
//
// They poll, while we hear of a slot as soon as it is free, and would get each. So while their work waits, we start about as
// many workflows as they do, and then leave a slot for them.
import { DatabaseStatementError } from '../../kernel/errors/errors.js';
import type { Limits } from './queue.js';
import { nowMs, type Sql, sql, table } from '../../kernel/sql/sql.js';
import { holdsEngineToken, isOwnedWith } from '../../run/rows/owner-tokens.js';
import { isEnqueued } from '../../run/rows/states.js';
import { type ClaimRemainder, inPartition, isScarce, type Scope } from './claim-limits.sql.js';

const workflows = table('workflow_status');
const sharedQueues = table('shared_queues');
const otherVersions = table('other_versions');
/** How far into a queue to look for their work. */
const WINDOW = 1000;
/** How many of the latest starts, of all queues, to look through for theirs. */
const STARTS_MAX = 5000;
/** How far ahead to count. */
const AHEAD_MAX = 1_000_000;
/** How long a claim waits for one of theirs, which takes a few milliseconds unless its process hangs. */
export const LOCK_TIMEOUT_MS = 1000;
const RETRY_MS = 10;

/** Whether other programs have ever used the database. Their sessions do not tell: any name and any pooler is possible. */
const hasOthers = sql`(SELECT COUNT(*) FROM (SELECT 1 FROM ${otherVersions} LIMIT 1) AS known) > 0`;

export function isLimited(limits: Limits | undefined): boolean {
  return limits !== undefined && (limits.concurrency !== null || limits.rate !== null);
}

/** Whether work of other programs is among the next in the queue or partition, and not all that waits may start. */
export function isContended(scope: Scope): Sql {
  return sql`(
    CASE WHEN NOT (${hasOthers}) OR NOT ${isScarce(scope)} THEN FALSE ELSE (
      SELECT COUNT(*)
      FROM (
        SELECT 1
        FROM (
          SELECT p.application_version AS version, p.application_name AS application
          FROM ${workflows} AS p
          WHERE p.queue_name = ${scope.queueName} AND ${isEnqueued('p')} ${inPartition(scope)}
          ORDER BY p.priority, p.created_at
          LIMIT ${WINDOW}) AS next
        JOIN ${otherVersions} AS o ON o.version_name = COALESCE(next.version, (
          SELECT v.version_name
          FROM ${table('application_versions')} AS v
          ORDER BY v.version_timestamp DESC, v.version_id DESC
          LIMIT 1
        )) AND (next.application IS NULL OR o.application_name IN ('', next.application))
        LIMIT 1) AS found
    ) > 0 END)`;
}

/** How far engines may be ahead of other programs: by half of what a limit of the whole queue allows. */
function aheadMax({ concurrency, rate }: Limits): number {
  return Math.max(1, Math.ceil(Math.min(concurrency ?? AHEAD_MAX, rate?.max ?? AHEAD_MAX) / 2));
}

/** How far engines are ahead, by a row `c` of theirs: what others have started since is taken off. */
function aheadNow(queueName: string): Sql {
  const started = sql`(
    SELECT COUNT(*)
    FROM (
      SELECT s.queue_name AS queue, s.owner_xid AS owner
      FROM ${workflows} AS s
      WHERE s.started_at_epoch_ms IS NOT NULL AND s.started_at_epoch_ms > c.claimed_at
      ORDER BY s.started_at_epoch_ms DESC
      LIMIT ${STARTS_MAX}) AS latest
    WHERE latest.queue = ${queueName} AND NOT ${holdsEngineToken(sql`COALESCE(latest.owner, '')`)})`;
  return sql`GREATEST(c.ahead - ${started}, 0)`;
}

/**
 * How many workflows of the queue engines may start before it is the turn of other programs. NULL if none waits, or if the
 * queue as a whole has no limit.
 */
export function spareOf({ queueName, whole, ...scope }: Scope): Sql {
  if (!isLimited(whole)) return sql`CAST(NULL AS BIGINT)`;
  return sql`(
    CASE WHEN ${isContended({ queueName, whole, ...scope })} THEN ${aheadMax(whole)} - COALESCE((
      SELECT ${aheadNow(queueName)} FROM ${sharedQueues} AS c WHERE c.name = ${queueName}
    ), 0) END)`;
}

/** Their work, as columns for `toOthersWork`. */
export function othersWork(scope: Scope): Sql {
  return sql`CASE WHEN ${isContended(scope)} THEN 1 ELSE 0 END AS is_contended, ${spareOf(scope)} AS spare`;
}

/** The mark of a claim that got something, as the last statement of its commit. */
export function markClaims(owner: string, { queueName, whole }: Scope): Sql {
  const max = aheadMax(whole);
  return sql`
    INSERT INTO ${sharedQueues} AS c (name, ahead, claimed_at)
    SELECT ${queueName}, CASE WHEN taken.n > ${max} THEN ${max} ELSE taken.n END, ${nowMs}
    FROM (SELECT COUNT(*) AS n FROM ${workflows} WHERE ${isOwnedWith(owner)}) AS taken
    WHERE taken.n > 0 AND ${hasOthers}
    ON CONFLICT (name) DO UPDATE
    SET ahead = LEAST(${max}, EXCLUDED.ahead + ${aheadNow(queueName)}), claimed_at = EXCLUDED.claimed_at`;
}

/** The claim has waited too long for one of another program. */
export function isLockedOut(error: unknown): boolean {
  return error instanceof DatabaseStatementError && error.sqlState === '55P03';
}

/** What a claim leaves that was locked out: it reports work as waiting, to be tried again soon. */
export function remainderAfterLockout(): ClaimRemainder {
  const waitMs = RETRY_MS * (0.5 + Math.random());
  return { isWaiting: true, hasRoom: false, waitMs, hasPartitionRoom: true, partitionWaitMs: null };
}
