// Taking workflows from a queue. A claim is one statement: it counts what the limits leave free, picks the next rows,
// makes them this engine's, and returns all that is needed to run them.
//
// Where a limit holds across processes, they take turns: each waits until the commit of the one before is through, and
// its statement then sees all that those before have claimed. So the count is exact. Without such a limit they claim
// side by side and skip what another one has locked.
import type { WorkflowRecord } from '../../model/records.js';
import { type Limits, UNLIMITED } from '../../model/queues.js';
import { advisoryLock, lock, nowMs, oneOf, type Sql, sql, table } from '../../sql/sql.js';
import {
  type ClaimRemainder,
  effectiveLimit,
  inPartition,
  isUnlimited,
  remainderStatement,
  type Scope,
  type Share,
  toRemainder,
} from './claim-limits.js';
import { workflowColumns } from '../columns.js';
import type { Database, Row } from '../database.js';
import { isEnqueued, unindexed } from '../runs/states.js';

export interface ClaimOptions {
  readonly queueName: string;
  readonly limit: number;
  /** The fencing token of the claimed workflows, never used before. */
  readonly owner: string;
  readonly executorID: string;
  readonly applicationVersion: string;
  readonly applicationName: string;
  /** Names of the functions that this engine has, as `class.name`. Rows of other functions are left to others. */
  readonly functions: readonly string[];
  /** The configured instances that it has, as `class/instance`. Rows of other instances are left to others. */
  readonly instances?: readonly string[];
  /** Limits of the queue across all processes. */
  readonly limits?: Limits;
  /** Leaves the others what is theirs when the queue is shared evenly. */
  readonly share?: Share;
}

export interface Claimed {
  readonly workflow: WorkflowRecord;
  /** How long the workflow may still run by the database's clock; null without a deadline. */
  readonly remainingMs: number | null;
  /** Whether an earlier run has left checkpoints. */
  readonly hasSteps: boolean;
}

export interface Claim {
  readonly claimed: readonly Claimed[];
  readonly remainder: ClaimRemainder;
}

const workflows = table('workflow_status');
const returned = workflowColumns.returning;
const isStillEnqueued = unindexed(sql`status = 'ENQUEUED'`);
const NOTHING_IN_THE_WAY = { hasRoom: true, waitMs: null, hasPartitionRoom: true, partitionWaitMs: null } as const;

/** Claims at most `limit` workflows of the queue: by priority, then in the order of their creation. */
export async function claimWorkflows(database: Database, options: ClaimOptions): Promise<Claim> {
  const scope: Scope = { queueName: options.queueName, whole: options.limits ?? UNLIMITED };
  const statement = claimStatement(options, scope, options.limit);
  if (isUnlimited(scope) && !options.share) {
    const claimed = (await database.run(statement)).map(toClaimed);
    return { claimed, remainder: { ...NOTHING_IN_THE_WAY, isWaiting: claimed.length >= options.limit } };
  }
  const locks = isUnlimited(scope) ? [] : [lockQueueClaims(options.queueName)];
  const results = await database.commit([...locks, statement, remainderStatement(scope)]);
  const [claimed = [], remainder = []] = results.slice(locks.length);
  return { claimed: claimed.map(toClaimed), remainder: toRemainder(remainder[0]) };
}

export interface PartitionClaimOptions extends Omit<ClaimOptions, 'limit' | 'share'> {
  readonly partitionLimits: Limits;
  /** The partitions to claim from, in this order, and how many of each at most. */
  readonly partitions: readonly { readonly key: string; readonly limit: number }[];
}

/** Claims from several partitions of a queue in one commit. Returns a claim for each. */
export async function claimPartitions(database: Database, options: PartitionClaimOptions): Promise<Claim[]> {
  const statements = options.partitions.flatMap(({ key, limit }) => {
    const { queueName, limits: whole = UNLIMITED, partitionLimits } = options;
    const scope: Scope = { queueName, whole, partition: { key, limits: partitionLimits } };
    return [claimStatement(options, scope, limit), remainderStatement(scope)];
  });
  const results = await database.commit([lockQueueClaims(options.queueName), ...statements]);
  return options.partitions.map((_, index) => ({
    claimed: (results[1 + 2 * index] ?? []).map(toClaimed),
    remainder: toRemainder(results[2 + 2 * index]?.[0]),
  }));
}

/** What the limits of a queue or of a partition leave free at the moment. */
export async function findRemainder(database: Database, scope: Scope): Promise<ClaimRemainder> {
  const [row] = await database.read(remainderStatement(scope));
  return toRemainder(row);
}

/** Waits until the claims under way are through, of a queue with a limit; those that come later wait for this commit. */
export function lockQueueClaims(queueName: string): Sql {
  return sql`SELECT ${advisoryLock(`queue.${queueName}`)} AS locked`;
}

function claimStatement(options: Omit<ClaimOptions, 'limit'>, scope: Scope, limit: number): Sql {
  const isRateLimited = scope.whole.rate !== null || (scope.partition?.limits.rate ?? null) !== null;
  // Rides idx_workflow_status_in_flight_v2 or …_partition_dequeue_v3. The picked rows are materialized: the planner must
  // not pick again for each row. The outer condition hides the status from it, or it would walk the whole queue once more
  // for each picked row. Rows of one millisecond come in the order in which their creator has numbered them.
  return sql`
    WITH picked AS MATERIALIZED (
      SELECT w.workflow_uuid AS id
      FROM ${workflows} AS w
      WHERE w.queue_name = ${scope.queueName} AND ${isEnqueued('w')} ${inPartition('w', scope)}
        AND (w.application_version = ${options.applicationVersion} OR (w.application_version IS NULL AND ${isLatest(options)}))
        AND (w.application_name = ${options.applicationName} OR w.application_name IS NULL)
        AND COALESCE(w.class_name, '') || '.' || w.name ${oneOf(options.functions)}
        AND (w.config_name IS NULL OR w.config_name = ''
          OR COALESCE(w.class_name, '') || '/' || w.config_name ${oneOf(options.instances ?? [])})
        AND (SELECT COUNT(*) FROM ${table('paused_queues')} AS z WHERE z.name = ${scope.queueName}) = 0
      ORDER BY w.priority, w.created_at, w.creator_xid, w.workflow_uuid
      LIMIT ${effectiveLimit(limit, scope, options.share)}
      ${lock('skip', 'w')}
    )
    UPDATE ${workflows}
    SET status = 'PENDING', owner_xid = ${options.owner}, executor_id = ${options.executorID},
      application_version = ${options.applicationVersion},
      application_name = COALESCE(application_name, ${options.applicationName}),
      started_at_epoch_ms = ${nowMs}, updated_at = ${nowMs}, recovery_attempts = recovery_attempts + 1,
      rate_limited = ${isRateLimited},
      workflow_deadline_epoch_ms = COALESCE(workflow_deadline_epoch_ms, ${nowMs} + workflow_timeout_ms)
    FROM picked
    WHERE workflow_uuid = picked.id AND ${isStillEnqueued}
    RETURNING ${returned}, workflow_deadline_epoch_ms - ${nowMs} AS remaining_ms,
      CASE WHEN EXISTS (
        SELECT 1 FROM ${table('operation_outputs')} AS s WHERE s.workflow_uuid = workflow_status.workflow_uuid
      ) THEN 1 ELSE 0 END AS has_steps`;
}

/** A row without a version goes to the latest one only. */
function isLatest(options: Pick<ClaimOptions, 'applicationVersion' | 'applicationName'>): Sql {
  return sql`${options.applicationVersion} = (
    SELECT v.version_name
    FROM ${table('application_versions')} AS v
    WHERE v.application_name = ${options.applicationName} OR v.application_name IS NULL
    ORDER BY v.version_timestamp DESC, v.version_id DESC
    LIMIT 1)`;
}

function toClaimed(row: Row): Claimed {
  return {
    workflow: workflowColumns.toRecord(row),
    remainingMs: row['remaining_ms'] as number | null,
    hasSteps: row['has_steps'] === 1,
  };
}

/** Inputs that another library has stored in a table of their own, by workflow ID. */
export async function findSeparateInputs(
  database: Database,
  workflowIDs: readonly string[],
): Promise<Map<string, string>> {
  const found = await database.read(sql`
    SELECT i.workflow_uuid, i.inputs
    FROM ${table('workflow_input')} AS i
    WHERE i.workflow_uuid ${oneOf(workflowIDs)}`);
  return new Map(found.map((row) => [row['workflow_uuid'] as string, row['inputs'] as string]));
}
