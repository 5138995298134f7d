// State changes of existing workflows that come from outside their run: cancel, resume, recover, give up. Each is one
// guarded statement that returns what it has changed.
import { DBOSNonExistentWorkflowError, InvalidQueueError } from '../../model/errors/errors.js';
import { hasOutcome, type WorkflowStatusString } from '../../model/status.js';
import { lock, nowMs, oneOf, type Sql, sql, table } from '../../sql/sql.js';
import type { Database, Row } from '../database.js';
import { isActive, isCancellable, isPending, isUnfinished, unindexed } from './states.js';

/** The queue of workflows that go on after a recovery, a resume or a fork without a queue of their own. */
export const INTERNAL_QUEUE = '_dbos_internal_queue';

const workflows = table('workflow_status');
const isStillActive = unindexed(isActive());

/** A workflow whose state has changed. */
export interface Changed {
  readonly workflowID: string;
  readonly queueName: string | null;
  readonly partitionKey: string | null;
  readonly className: string | null;
  readonly name: string;
}

function toChanged(row: Row): Changed {
  return {
    workflowID: row['workflow_uuid'] as string,
    queueName: row['queue_name'] as string | null,
    partitionKey: row['queue_partition_key'] as string | null,
    className: row['class_name'] as string | null,
    name: row['name'] as string,
  };
}

/** Cancels those that have not ended, with all their descendants if wanted. Returns the IDs that were cancelled. */
export async function cancelWorkflows(
  database: Database,
  workflowIDs: readonly string[],
  { children = false } = {},
): Promise<string[]> {
  if (!children) return idsOf(await database.run(cancelEach(workflowIDs)));
  const cancelled: string[] = [];
  // A child that its parent has started meanwhile is found by the next look: a cancelled parent starts no more.
  for (let latest: string[] = ['']; latest.length > 0; cancelled.push(...latest)) {
    latest = idsOf(await database.run(cancelTrees(workflowIDs)));
  }
  return cancelled;
}

function idsOf(rows: readonly Row[]): string[] {
  return rows.map((row) => row['workflow_uuid'] as string);
}

/** What a cancelled workflow is like. */
export const cancellation = sql`
  status = 'CANCELLED', queue_name = NULL, deduplication_id = NULL, started_at_epoch_ms = NULL, owner_xid = NULL,
  updated_at = ${nowMs}, completed_at = ${nowMs}`;

function cancelEach(workflowIDs: readonly string[]): Sql {
  return sql`
    UPDATE ${workflows}
    SET ${cancellation}
    WHERE workflow_uuid ${oneOf(workflowIDs)} AND ${isCancellable()}
    RETURNING workflow_uuid`;
}

// Rides idx_workflow_status_parent_workflow_id from level to level.
function cancelTrees(workflowIDs: readonly string[]): Sql {
  return sql`
    WITH RECURSIVE tree(id) AS (
      SELECT w.workflow_uuid FROM ${workflows} AS w WHERE w.workflow_uuid ${oneOf(workflowIDs)}
      UNION
      SELECT c.workflow_uuid FROM tree JOIN ${workflows} AS c ON c.parent_workflow_id = tree.id
    )
    UPDATE ${workflows}
    SET ${cancellation}
    WHERE workflow_uuid IN (SELECT id FROM tree) AND ${isCancellable()}
    RETURNING workflow_uuid`;
}

/** Cancels the active workflows of a schedule but this one, if this one was created by its own call. */
export function cancelOthersOfSchedule(
  scheduleName: string,
  { workflowID, creator }: { readonly workflowID: string; readonly creator: string },
): Sql {
  // Rides idx_workflow_status_schedule_name.
  return sql`
    UPDATE ${workflows}
    SET ${cancellation}
    WHERE schedule_name = ${scheduleName} AND schedule_name IS NOT NULL AND workflow_uuid <> ${workflowID}
      AND ${isStillActive}
      AND EXISTS (SELECT 1 FROM ${workflows} AS n WHERE n.workflow_uuid = ${workflowID} AND n.creator_xid = ${creator})
    RETURNING workflow_uuid`;
}

/** Cancels active workflows whose deadline has passed, at most `limit` of them, the most overdue first. */
export async function cancelOverdue(database: Database, limit: number): Promise<string[]> {
  // Rides idx_workflow_status_deadline.
  const cancelled = await database.run(sql`
    WITH picked AS MATERIALIZED (
      SELECT w.workflow_uuid AS id
      FROM ${workflows} AS w
      WHERE ${isActive('w')} AND w.workflow_deadline_epoch_ms IS NOT NULL
        AND w.workflow_deadline_epoch_ms <= ${nowMs}
      ORDER BY w.workflow_deadline_epoch_ms
      LIMIT ${limit}
    )
    UPDATE ${workflows}
    SET ${cancellation}
    FROM picked
    WHERE workflow_uuid = picked.id AND ${isStillActive}
    RETURNING workflow_uuid`);
  return idsOf(cancelled);
}

/** How long until the next deadline of an active workflow by the database's clock; undefined when there is none. */
export async function msToNextDeadline(database: Database): Promise<number | undefined> {
  const [row] = await database.read(sql`
    SELECT w.workflow_deadline_epoch_ms - ${nowMs} AS remaining
    FROM ${workflows} AS w
    WHERE ${isActive('w')} AND w.workflow_deadline_epoch_ms IS NOT NULL
    ORDER BY w.workflow_deadline_epoch_ms
    LIMIT 1`);
  return row?.['remaining'] as number | undefined;
}

export interface Resumption {
  readonly queueName?: string;
  /** Null leaves each its own. */
  readonly partitionKey?: string | null;
  /** Whether a workflow without a partition key would wait in the queue for ever. */
  readonly isPartitioned?: boolean;
}

/** Puts workflows that have not ended back into a queue, with a fresh start. All must exist, or none is resumed. */
export async function resumeWorkflows(
  database: Database,
  workflowIDs: readonly string[],
  { queueName = INTERNAL_QUEUE, partitionKey = null, isPartitioned = false }: Resumption = {},
): Promise<Changed[]> {
  return database.transaction(async (tx) => {
    const found = await tx.run(sql`
      SELECT w.workflow_uuid, w.queue_partition_key, w.status
      FROM ${workflows} AS w
      WHERE w.workflow_uuid ${oneOf(workflowIDs)}
      ${lock('update', 'w')}`);
    const existing = new Set(idsOf(found));
    const missing = workflowIDs.find((workflowID) => !existing.has(workflowID));
    if (missing !== undefined) throw new DBOSNonExistentWorkflowError(`Workflow ${missing} does not exist`);
    const [keyless] = found.filter(
      (row) => row['queue_partition_key'] === null && !hasOutcome(row['status'] as WorkflowStatusString),
    );
    if (isPartitioned && partitionKey === null && keyless) {
      throw new InvalidQueueError(
        `Queue "${queueName}" is partitioned and workflow "${String(keyless['workflow_uuid'])}" has no partition key. Give it one with queuePartitionKey.`,
      );
    }
    const resumed = await tx.run(sql`
      UPDATE ${workflows}
      SET status = 'ENQUEUED', queue_name = ${queueName}, recovery_attempts = 0, workflow_deadline_epoch_ms = NULL,
        deduplication_id = NULL, started_at_epoch_ms = NULL, completed_at = NULL, owner_xid = NULL, delay_until_epoch_ms = NULL,
        queue_partition_key = COALESCE(${partitionKey}, queue_partition_key), updated_at = ${nowMs}
      WHERE workflow_uuid ${oneOf(workflowIDs)} AND ${isUnfinished()}
      RETURNING workflow_uuid, queue_name, queue_partition_key, class_name, name`);
    return resumed.map(toChanged);
  });
}

// A start that a rate limit has counted is counted until its period is over, although the workflow is to start again.
const requeued = sql`
  status = 'ENQUEUED', owner_xid = NULL, updated_at = ${nowMs},
  started_at_epoch_ms = CASE WHEN rate_limited = TRUE THEN started_at_epoch_ms END,
  queue_name = COALESCE(queue_name, ${INTERNAL_QUEUE})`;

/**
 * Puts the running workflows of an engine that is gone back into their queues; with `ifLeaseOver` only if its lease is
 * over at this moment.
 */
export async function recoverIncarnation(
  database: Database,
  ownerPrefix: string,
  { ifLeaseOver = false } = {},
): Promise<Changed[]> {
  const condition = ifLeaseOver
    ? sql`AND EXISTS (
        SELECT 1
        FROM ${table('executors')} AS e
        WHERE e.incarnation_id = ${ownerPrefix} AND e.lease_until_epoch_ms < ${nowMs})`
    : sql``;
  // The owner token begins with the engine's own; the range holds exactly those. Rides idx_workflow_status_pending.
  const recovered = await database.run(sql`
    UPDATE ${workflows}
    SET ${requeued}
    WHERE status = 'PENDING' AND owner_xid >= ${`${ownerPrefix}.`} AND owner_xid < ${`${ownerPrefix}/`} ${condition}
    RETURNING workflow_uuid, queue_name, queue_partition_key, class_name, name`);
  return recovered.map(toChanged);
}

/**
 * Puts the running workflows of engines that are not on the list back into their queues. An engine that was taken for
 * dead may have begun new work and died before it was on the list again.
 */
export async function recoverUnlisted(database: Database): Promise<Changed[]> {
  // Rides idx_workflow_status_pending. Tokens of other libraries have no dot.
  const recovered = await database.run(sql`
    UPDATE ${workflows}
    SET ${requeued}
    WHERE status = 'PENDING' AND owner_xid LIKE '%.%' AND NOT EXISTS (
      SELECT 1
      FROM ${table('executors')} AS e
      WHERE owner_xid >= e.incarnation_id || '.' AND owner_xid < e.incarnation_id || '/')
    RETURNING workflow_uuid, queue_name, queue_partition_key, class_name, name`);
  return recovered.map(toChanged);
}

/** Puts the running workflows of an executor ID and version back, except those that `keptPrefix` owns. */
export async function recoverExecutor(
  database: Database,
  executor: { readonly executorID: string; readonly applicationVersion: string; readonly keptPrefix: string },
): Promise<Changed[]> {
  const recovered = await database.run(sql`
    UPDATE ${workflows}
    SET ${requeued}
    WHERE status = 'PENDING' AND executor_id = ${executor.executorID}
      AND application_version = ${executor.applicationVersion}
      AND (owner_xid IS NULL OR owner_xid < ${`${executor.keptPrefix}.`} OR owner_xid >= ${`${executor.keptPrefix}/`})
    RETURNING workflow_uuid, queue_name, queue_partition_key, class_name, name`);
  return recovered.map(toChanged);
}

/** A workflow and the token under which a run here owns it. */
export interface Owned {
  readonly workflowID: string;
  readonly owner: string;
}

/** The running workflows that an engine owns, except those it has taken within the last `sinceMs`. */
export async function findOwnedBy(database: Database, ownerPrefix: string, sinceMs: number): Promise<Owned[]> {
  const found = await database.read(sql`
    SELECT w.workflow_uuid, w.owner_xid
    FROM ${workflows} AS w
    WHERE w.status = 'PENDING' AND w.owner_xid >= ${`${ownerPrefix}.`} AND w.owner_xid < ${`${ownerPrefix}/`}
      AND w.updated_at <= ${nowMs} - CAST(${sinceMs} AS BIGINT)`);
  return found.map((row) => ({ workflowID: row['workflow_uuid'] as string, owner: row['owner_xid'] as string }));
}

/** The running workflows with this very token. */
export async function findOwnedWith(database: Database, owner: string): Promise<Owned[]> {
  const found = await database.read(sql`
    SELECT w.workflow_uuid FROM ${workflows} AS w WHERE w.status = 'PENDING' AND w.owner_xid = ${owner}`);
  return found.map((row) => ({ workflowID: row['workflow_uuid'] as string, owner }));
}

/** Gives workflows that are owned here back to their queues: they will not be finished here. No attempt is counted. */
export async function handBack(database: Database, owned: readonly Owned[]): Promise<Changed[]> {
  const given = await database.run(sql`
    UPDATE ${workflows}
    SET ${requeued}, recovery_attempts = CASE WHEN recovery_attempts > 0 THEN recovery_attempts - 1 ELSE 0 END
    WHERE ${isOwned(owned)}
    RETURNING workflow_uuid, queue_name, queue_partition_key, class_name, name`);
  return given.map(toChanged);
}

/** Moves workflows that have been tried too often to the dead letters. */
export async function deadLetterIfOwned(database: Database, owned: readonly Owned[]): Promise<string[]> {
  const dead = await database.run(sql`
    UPDATE ${workflows}
    SET status = 'MAX_RECOVERY_ATTEMPTS_EXCEEDED', queue_name = NULL, deduplication_id = NULL, started_at_epoch_ms = NULL,
      owner_xid = NULL, updated_at = ${nowMs}, completed_at = ${nowMs}
    WHERE ${isOwned(owned)}
    RETURNING workflow_uuid`);
  return idsOf(dead);
}

function isOwned(owned: readonly Owned[]): Sql {
  const workflowIDs = owned.map(({ workflowID }) => workflowID);
  const owners = [...new Set(owned.map(({ owner }) => owner))];
  return sql`workflow_uuid ${oneOf(workflowIDs)} AND owner_xid ${oneOf(owners)} AND ${isPending()}`;
}
