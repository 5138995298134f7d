// State changes made to workflows from outside their run: cancel, resume, recover, dead-letter. Each is one guarded
// statement that returns what it changed.
import { INTERNAL_QUEUE } from '../../features/queue/queue.js';
import { DBOSNonExistentWorkflowError, InvalidQueueError } from '../../kernel/errors/errors.js';
import { hasOutcome, type WorkflowStatusString } from '../../kernel/workflow/status.js';
import { lock, nowMs, oneOf, searchableNowMs, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Database, Executor, Reader, Row } from '../../database/database.js';
import { type ChangeNote, noted, runNoted } from '../../features/history/notes.sql.js';
import {
  divergedToken,
  holdsDivergedToken,
  holdsEngineToken,
  isNotOwnedBy,
  isOwnedBy,
  isOwnedWith,
  isUnlisted,
  removal,
} from './owner-tokens.js';
import { isActive, isCancellable, isEnqueued, isPending, isUnfinished, unindexed } from './states.js';

const workflows = table('workflow_status');
const isStillActive = unindexed(isActive());

/** A workflow whose state changed. */
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

/** Cancels the workflows that have not ended, with their descendants if asked to. Returns the cancelled IDs. */
export async function cancelWorkflows(
  database: Database,
  workflowIDs: readonly string[],
  { children = false, note }: { readonly children?: boolean; readonly note?: ChangeNote } = {},
): Promise<string[]> {
  if (!children) return idsOf(await runNoted(database, note, cancelEach(workflowIDs)));
  const cancelled: string[] = [];
  // The next round finds children started meanwhile. A cancelled parent starts no more.
  for (let latest: string[] = ['']; latest.length > 0; cancelled.push(...latest)) {
    latest = idsOf(await runNoted(database, note, cancelTrees(workflowIDs)));
  }
  return cancelled;
}

function idsOf(rows: readonly Row[]): string[] {
  return rows.map((row) => row['workflow_uuid'] as string);
}

// A start that a rate limit counted stays counted until its period ends.
const leftQueue = sql`
  queue_name = CASE WHEN rate_limited = TRUE THEN queue_name END,
  started_at_epoch_ms = CASE WHEN rate_limited = TRUE THEN started_at_epoch_ms END`;

const isBetweenRuns = sql`status IN ('DELAYED', 'ENQUEUED') AND ${holdsEngineToken(sql`owner_xid`)}`;

/**
 * For changes that end the wait of a parked workflow, or of one that was woken, otherwise than by a claim. Its delay is none
 * that somebody asked for, and parking has taken back the attempt that the claim would count.
 */
export const unparked = sql`
  delay_until_epoch_ms = CASE WHEN ${isBetweenRuns} THEN NULL ELSE delay_until_epoch_ms END,
  recovery_attempts = recovery_attempts + CASE WHEN ${isBetweenRuns} THEN 1 ELSE 0 END`;

// The token stays: the run may still record the step that it is in.
export const cancellation = sql`
  status = 'CANCELLED', ${leftQueue}, ${unparked}, deduplication_id = NULL,
  updated_at = ${nowMs}, completed_at = ${nowMs}`;

const deadLettered = sql`
  status = 'MAX_RECOVERY_ATTEMPTS_EXCEEDED', ${leftQueue}, deduplication_id = NULL,
  owner_xid = NULL, updated_at = ${nowMs}, completed_at = ${nowMs}`;

function cancelEach(workflowIDs: readonly string[]): Sql {
  return sql`
    UPDATE ${workflows}
    SET ${cancellation}
    WHERE workflow_uuid ${oneOf(workflowIDs)} AND ${isCancellable()}
    RETURNING workflow_uuid`;
}

// Uses idx_workflow_status_parent_workflow_id for each level.
function treesOf(workflowIDs: readonly string[]): Sql {
  return sql`
    WITH RECURSIVE tree(id) AS (
      SELECT w.workflow_uuid FROM ${workflows} AS w WHERE w.workflow_uuid ${oneOf(workflowIDs)}
      UNION
      SELECT c.workflow_uuid FROM tree JOIN ${workflows} AS c ON c.parent_workflow_id = tree.id
    )`;
}

/** The IDs of the existing workflows and of all their descendants. */
export async function findTrees(database: Reader, workflowIDs: readonly string[]): Promise<string[]> {
  return idsOf(await database.read(sql`${treesOf(workflowIDs)} SELECT tree.id AS workflow_uuid FROM tree`));
}

function cancelTrees(workflowIDs: readonly string[]): Sql {
  return sql`
    ${treesOf(workflowIDs)}
    UPDATE ${workflows}
    SET ${cancellation}
    WHERE workflow_uuid IN (SELECT id FROM tree) AND ${isCancellable()}
    RETURNING workflow_uuid`;
}

/** Cancels the schedule's other active workflows, if this call created the given one. */
export function cancelOthersOfSchedule(
  scheduleName: string,
  { workflowID, creator }: { readonly workflowID: string; readonly creator: string },
): Sql {
  // Uses idx_workflow_status_schedule_name.
  return sql`
    UPDATE ${workflows}
    SET ${cancellation}
    WHERE schedule_name = ${scheduleName} AND schedule_name IS NOT NULL AND workflow_uuid <> ${workflowID}
      AND ${isStillActive}
      AND EXISTS (SELECT 1 FROM ${workflows} AS n WHERE n.workflow_uuid = ${workflowID} AND n.creator_xid = ${creator})
    RETURNING workflow_uuid`;
}

/** Cancels up to `limit` active workflows past their deadline, the most overdue first. */
export async function cancelOverdue(database: Database, limit: number): Promise<string[]> {
  // Uses idx_workflow_status_deadline.
  const cancelled = await database.run(sql`
    WITH picked AS MATERIALIZED (
      SELECT w.workflow_uuid AS id
      FROM ${workflows} AS w
      WHERE ${isActive('w')} AND w.workflow_deadline_epoch_ms IS NOT NULL
        AND w.workflow_deadline_epoch_ms <= ${searchableNowMs}
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

/** Time to the next deadline of an active workflow by the database clock; undefined if there is none. */
export async function msToNextDeadline(database: Database): Promise<number | undefined> {
  const [row] = await database.read(sql`
    SELECT w.workflow_deadline_epoch_ms AS due, ${nowMs} AS now
    FROM ${workflows} AS w
    WHERE ${isActive('w')} AND w.workflow_deadline_epoch_ms IS NOT NULL
    ORDER BY w.workflow_deadline_epoch_ms
    LIMIT 1`);
  // Subtracted here: the server fails on a difference that is out of range.
  return row && Number(row['due']) - Number(row['now']);
}

export interface Resumption {
  readonly queueName?: string;
  /** Null keeps each workflow's own. */
  readonly partitionKey?: string | null;
  /** Whether the queue is partitioned: a workflow without a key would never leave it. */
  readonly isPartitioned?: boolean;
  readonly note?: ChangeNote;
}

/** Enqueues unfinished workflows again, with their attempts reset. All must exist, or none is resumed. */
export async function resumeWorkflows(
  database: Database,
  workflowIDs: readonly string[],
  { queueName = INTERNAL_QUEUE, partitionKey = null, isPartitioned = false, note }: Resumption = {},
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
        `Queue "${queueName}" is partitioned and workflow "${String(keyless['workflow_uuid'])}" has no partition key. Set queuePartitionKey.`,
      );
    }
    const resume = sql`
      UPDATE ${workflows}
      SET status = 'ENQUEUED', queue_name = ${queueName}, recovery_attempts = 0, workflow_deadline_epoch_ms = NULL,
        deduplication_id = NULL, started_at_epoch_ms = NULL, completed_at = NULL, owner_xid = NULL, delay_until_epoch_ms = NULL,
        queue_partition_key = COALESCE(${partitionKey}, queue_partition_key), updated_at = ${nowMs}
      WHERE workflow_uuid ${oneOf(workflowIDs)} AND ${isUnfinished()}
      RETURNING workflow_uuid, queue_name, queue_partition_key, class_name, name`;
    const resumed = await noted(tx, { ...note, source: 'resume' }, () => tx.run(resume));
    return resumed.map(toChanged);
  });
}

// A start that a rate limit counted stays counted until its period ends, although the workflow starts again.
const requeued = sql`
  status = 'ENQUEUED', owner_xid = NULL, updated_at = ${nowMs},
  started_at_epoch_ms = CASE WHEN rate_limited = TRUE THEN started_at_epoch_ms END,
  queue_name = COALESCE(queue_name, ${INTERNAL_QUEUE})`;

const withoutAttempt = sql`CASE WHEN recovery_attempts > 0 THEN recovery_attempts - 1 ELSE 0 END`;
/** A run that has diverged has not ended its process: its attempt does not count. */
const recovered = sql`
  ${requeued},
  recovery_attempts = CASE WHEN ${holdsDivergedToken(sql`owner_xid`)} THEN ${withoutAttempt} ELSE recovery_attempts END`;

/** Re-enqueues the running workflows of an engine that is not registered any more. */
export async function recoverIncarnation(database: Database, incarnationID: string): Promise<Changed[]> {
  return (await database.run(requeueOf(incarnationID))).map(toChanged);
}

/**
 * Removes a dead engine and re-enqueues its running workflows, in one commit; with the end of its lease not if the engine
 * has renewed that. Undefined if there was nothing to do.
 */
export async function takeOver(
  database: Database,
  incarnationID: string,
  leaseUntil?: number,
): Promise<Changed[] | undefined> {
  const statements = [removal(incarnationID, leaseUntil), requeueOf(incarnationID)];
  const [removed = [], rows = []] = await database.commit(statements);
  return removed.length + rows.length === 0 ? undefined : rows.map(toChanged);
}

function requeueOf(incarnationID: string): Sql {
  return sql`
    UPDATE ${workflows}
    SET ${recovered}
    WHERE ${isOwnedBy(incarnationID)} AND ${isUnlisted(incarnationID)}
    RETURNING workflow_uuid, queue_name, queue_partition_key, class_name, name`;
}

/** Re-enqueues the running workflows of an executor ID and version, except those owned by `keptPrefix`. */
export async function recoverExecutor(
  database: Database,
  executor: { readonly executorID: string; readonly applicationVersion: string; readonly keptPrefix: string },
): Promise<Changed[]> {
  const rows = await database.run(sql`
    UPDATE ${workflows}
    SET ${recovered}
    WHERE status = 'PENDING' AND executor_id = ${executor.executorID}
      AND application_version = ${executor.applicationVersion}
      AND ${isNotOwnedBy(executor.keptPrefix)}
    RETURNING workflow_uuid, queue_name, queue_partition_key, class_name, name`);
  return rows.map(toChanged);
}

/** A workflow and the owner token of its run here. */
export interface Owned {
  readonly workflowID: string;
  readonly owner: string;
}

/** The running workflows that an engine owns, except those claimed within the last `sinceMs`, or ahead of a clock set back. */
export async function findOwnedBy(database: Database, incarnationID: string, sinceMs: number): Promise<Owned[]> {
  const since = sql`CAST(${sinceMs} AS BIGINT)`;
  const isSettled =
    sinceMs > 0 ? sql`AND (updated_at <= ${nowMs} - ${since} OR updated_at >= ${nowMs} + ${since})` : sql``;
  const found = await database.read(sql`
    SELECT workflow_uuid, owner_xid
    FROM ${workflows}
    WHERE ${isOwnedBy(incarnationID)} ${isSettled}`);
  return found.map((row) => ({ workflowID: row['workflow_uuid'] as string, owner: row['owner_xid'] as string }));
}

/** The running workflows with this token. */
export async function findOwnedWith(database: Database, owner: string): Promise<Owned[]> {
  const found = await database.read(sql`
    SELECT workflow_uuid FROM ${workflows} WHERE ${isOwnedWith(owner)}`);
  return found.map((row) => ({ workflowID: row['workflow_uuid'] as string, owner }));
}

/** Re-enqueues owned workflows that will not finish here. The attempt does not count. */
export async function handBack(database: Database, owned: readonly Owned[]): Promise<Changed[]> {
  return (await runNoted(database, HANDED_BACK, handingBack(owned))).map(toChanged);
}

/** The same in a transaction. */
export async function handBackIn(tx: Executor, owned: readonly Owned[]): Promise<Changed[]> {
  return (await noted(tx, HANDED_BACK, () => tx.run(handingBack(owned)))).map(toChanged);
}

const HANDED_BACK = { source: 'handed back' } as const;

function handingBack(owned: readonly Owned[]): Sql {
  return sql`
    UPDATE ${workflows}
    SET ${requeued}, recovery_attempts = ${withoutAttempt}
    WHERE ${isOwned(owned)}
    RETURNING workflow_uuid, queue_name, queue_partition_key, class_name, name`;
}

/**
 * Marks an owned workflow whose run has diverged. It stays with its engine, but holds no slot, and nothing that the run has
 * written since is accepted. False if the run no longer owns it. May be repeated.
 */
export async function markDiverged(database: Database, { workflowID, owner }: Owned): Promise<boolean> {
  const token = divergedToken(owner);
  const marked = await database.run(sql`
    UPDATE ${workflows}
    SET owner_xid = ${token}, updated_at = ${nowMs}
    WHERE workflow_uuid = ${workflowID} AND owner_xid ${oneOf([owner, token])} AND ${isPending()}
    RETURNING workflow_uuid`);
  return marked.length > 0;
}

/** Moves an owned workflow whose code ends the process to the dead letters, if it has been attempted so often. */
export async function deadLetterFatal(database: Database, owned: Owned, attempts: number): Promise<boolean> {
  const dead = await database.run(sql`
    UPDATE ${workflows}
    SET ${deadLettered}
    WHERE ${isOwned([owned])} AND recovery_attempts >= ${attempts}
    RETURNING workflow_uuid`);
  return dead.length > 0;
}

/** Moves owned workflows to the dead letters: they were attempted too often. */
export async function deadLetterIfOwned(database: Database, owned: readonly Owned[]): Promise<string[]> {
  const dead = await database.run(sql`
    UPDATE ${workflows}
    SET ${deadLettered}
    WHERE ${isOwned(owned)}
    RETURNING workflow_uuid`);
  return idsOf(dead);
}

/** Ends a workflow that cannot be claimed. */
export async function failIfEnqueued(database: Database, workflowID: string, error: string): Promise<boolean> {
  const failed = await database.run(sql`
    UPDATE ${workflows}
    SET status = 'ERROR', error = ${error}, ${leftQueue}, deduplication_id = NULL, updated_at = ${nowMs},
      completed_at = ${nowMs}
    WHERE workflow_uuid = ${workflowID} AND ${isEnqueued()}
    RETURNING workflow_uuid`);
  return failed.length > 0;
}

function isOwned(owned: readonly Owned[]): Sql {
  const workflowIDs = owned.map(({ workflowID }) => workflowID);
  const owners = [...new Set(owned.map(({ owner }) => owner))];
  return sql`workflow_uuid ${oneOf(workflowIDs)} AND owner_xid ${oneOf(owners)} AND ${isPending()}`;
}
