// Claims from a queue that DBOS workers serve, too, and whose limits apply across processes. They do not know our lock. They
// count what runs in a snapshot, lock the next rows of their version with NOWAIT, and fail if one is locked or was changed
// since that snapshot. So we lock the rows that they would lock, count only then, and change those rows if we took any.
// Postgres only.
//
//   they lock, we come     our lock fails, and we retry
//   we lock, they come     theirs fails, and they retry
//   they count, we commit  their lock fails: the rows are newer than their snapshot
import { DatabaseStatementError } from '../../kernel/errors/errors.js';
import type { Limits } from './queue.js';
import { lock, oneOf, type Sql, sql, table } from '../../kernel/sql/sql.js';
import { holdsEngineToken } from '../../run/rows/owner-tokens.js';
import { isEnqueued, unindexed } from '../../run/rows/states.js';
import type { ClaimRemainder, Scope } from './claim-limits.sql.js';

/** The claims of one commit: all of the same queue. */
export interface GuardedClaims {
  readonly owner: string;
  readonly scopes: readonly Scope[];
}

const workflows = table('workflow_status');
/** Rows at the head of a queue among which the next ones of each version are sought. */
const WINDOW = 1000;
/** Rows of a version that are locked. One would do if none were inserted or cancelled meanwhile. */
const HEADS = 3;
/** Their transactions take a few milliseconds. */
const RETRY_MS = 10;

/**
 * Whether workers of DBOS are connected. A subquery without EXISTS is evaluated once, and first. The view would join two
 * more catalogues.
 */
export const hasForeignWorkers = sql`(
  SELECT COUNT(*)
  FROM (
    SELECT 1
    FROM pg_catalog.pg_stat_get_activity(NULL) AS a
    WHERE a.datid = (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = current_database())
      AND a.application_name LIKE 'dbos\\_transact\\_%'
    LIMIT 1) AS found) > 0`;

/** Encloses the claims' statements, if the queue has limits that DBOS workers count as well. */
export function guardClaims(claims: GuardedClaims, statements: readonly Sql[]): readonly Sql[] {
  const [scope] = claims.scopes;
  if (!scope || (!isLimited(scope.whole) && !isLimited(scope.partition?.limits))) return statements;
  return [lockHeads(claims.scopes), ...statements, touchHeads(claims)];
}

function isLimited(limits: Limits | undefined): boolean {
  return limits !== undefined && (limits.concurrency !== null || limits.rate !== null);
}

function lockHeads(scopes: readonly Scope[]): Sql {
  return sql`
    SELECT w.workflow_uuid
    FROM ${workflows} AS w
    WHERE ${hasForeignWorkers} AND w.workflow_uuid = ANY (ARRAY(${headsOf(scopes)}))
    ${lock('nowait', 'w')}`;
}

const isOurs = holdsEngineToken(sql`o.owner_xid`);

/** A change that changes nothing: their transactions fail at a row that is newer than their snapshot. */
function touchHeads({ owner, scopes }: GuardedClaims): Sql {
  return sql`
    UPDATE ${workflows}
    SET priority = priority
    WHERE ${hasForeignWorkers}
      AND (
        SELECT COUNT(*)
        FROM ${workflows} AS o
        WHERE o.owner_xid = ${owner} AND o.status = 'PENDING' AND ${isOurs}
      ) > 0
      AND workflow_uuid = ANY (ARRAY(${headsOf(scopes)})) AND ${unindexed(sql`status = 'ENQUEUED'`)}`;
}

/**
 * The next rows of each version, and of each partition if the queue has any: a worker takes those of one version and
 * partition. In the order of idx_workflow_status_in_flight_v2, as theirs: rows of one millisecond come as they were stored.
 */
function headsOf(scopes: readonly Scope[]): Sql {
  const { queueName, whole } = scopes[0] as Scope;
  const keys = scopes.flatMap(({ partition }) => partition?.key ?? []);
  const isWhole = isLimited(whole) || keys.length === 0;
  return sql`
    SELECT unnest((array_agg(first.id ORDER BY first.position))[1:${HEADS}])
    FROM (
      SELECT p.*, ROW_NUMBER() OVER () AS position
      FROM (
        SELECT p.workflow_uuid AS id, p.application_version AS version, p.queue_partition_key AS partition_key
        FROM ${workflows} AS p
        WHERE p.queue_name = ${queueName} AND ${isEnqueued('p')}
          ${isWhole ? sql`` : sql`AND p.queue_partition_key ${oneOf(keys)}`}
        ORDER BY p.priority, p.created_at
        LIMIT ${WINDOW}) AS p) AS first
    GROUP BY first.version, first.partition_key`;
}

/** Another session holds a row that the claim has to lock. */
export function isLockedOut(error: unknown): boolean {
  return error instanceof DatabaseStatementError && error.sqlState === '55P03';
}

/** What a claim leaves that was locked out: everything, for a moment. */
export function remainderAfterLockout(): ClaimRemainder {
  const waitMs = RETRY_MS * (0.5 + Math.random());
  return { isWaiting: true, hasRoom: false, waitMs, hasPartitionRoom: true, partitionWaitMs: null };
}
