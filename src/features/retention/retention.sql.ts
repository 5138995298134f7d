// Walks old workflows in bounded steps, and deletes or cancels those that are due. A walk goes by creation time, oldest
// first, and keeps a cursor between statements, so that none reads more than its limit.
import { OCCURRENCE_KEPT_MS, OCCURRENCE_PREFIX } from '../schedule/schedule.js';
import type { WorkflowStatusString } from '../../kernel/workflow/status.js';
import { nowMs, oneOf, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';
import { lacks } from '../../database/lacking.js';
import { deletePayloads } from '../lifecycle/deletion.sql.js';
import { runNoted } from '../history/notes.sql.js';
import { cancellation } from '../../run/rows/lifecycle.js';
import { isActive, unindexed } from '../../run/rows/states.js';

/** A position in a walk: after this row. */
export interface AgeCursor {
  readonly at: number;
  readonly workflowID: string;
}

/** Before all rows. */
export const OLDEST: AgeCursor = { at: Number.MIN_SAFE_INTEGER, workflowID: '' };

export interface AgedWorkflow extends AgeCursor {
  readonly status: WorkflowStatusString;
  /** Whether it belongs to the application or to none. */
  readonly isOwn: boolean;
  readonly name: string | null;
  readonly updatedAt: number;
  /** When it ended, if it has. Rows of other libraries may lack it; then it is the last change. */
  readonly endedAt: number;
}

export interface AgeRange {
  readonly after: AgeCursor;
  /** Exclusive. */
  readonly before: number;
  readonly limit: number;
}

const workflows = table('workflow_status');
const steps = table('operation_outputs');

function isOwn(applicationName: string | null): Sql {
  if (applicationName === null) return sql`TRUE`;
  return sql`(w.application_name = ${applicationName} OR w.application_name IS NULL)`;
}

/** The oldest workflows of a range, in any state. Uses workflow_status_created_at_index. */
export async function listByAge(
  database: Database,
  { after, before, limit }: AgeRange,
  applicationName: string | null,
): Promise<AgedWorkflow[]> {
  const found = await database.read(sql`
    SELECT w.workflow_uuid, w.created_at, w.status, w.name, w.updated_at, w.completed_at, CASE WHEN ${isOwn(applicationName)} THEN 1 ELSE 0 END AS is_own
    FROM ${workflows} AS w
    WHERE w.created_at >= ${after.at} AND (w.created_at > ${after.at} OR w.workflow_uuid > ${after.workflowID})
      AND w.created_at < ${before}
    ORDER BY w.created_at, w.workflow_uuid
    LIMIT ${limit}`);
  return found.map((row) => ({
    workflowID: row['workflow_uuid'] as string,
    at: row['created_at'] as number,
    status: row['status'] as WorkflowStatusString,
    isOwn: row['is_own'] === 1,
    name: row['name'] as string | null,
    updatedAt: row['updated_at'] as number,
    endedAt: (row['completed_at'] ?? row['updated_at']) as number,
  }));
}

/** Its parent may still want the outcome. */
const hasActiveParent = sql`EXISTS (
  SELECT 1
  FROM ${workflows} AS p
  WHERE p.workflow_uuid = workflow_status.parent_workflow_id AND ${unindexed(isActive('p'))})`;

/** An engine that was paused for a while fires what it has missed, unless the row says that another has fired it. */
const isRecentOccurrence = sql`(
  workflow_uuid LIKE ${`${OCCURRENCE_PREFIX}%`} AND created_at >= ${nowMs} - CAST(${2 * OCCURRENCE_KEPT_MS} AS BIGINT))`;

/** For queues that are not in the database, whose period is not known here. */
const PERIOD_MS = 86_400_000;

/** A rate limit counts its start until the period ends. */
const isCountedStart = sql`(
  rate_limited = TRUE AND started_at_epoch_ms > ${nowMs} - COALESCE((
    SELECT CAST(1000 * (COALESCE(q.rate_limit_period_sec, 0) + COALESCE(q.partition_rate_limit_period_sec, 0)) AS BIGINT)
    FROM ${table('queues')} AS q
    WHERE q.name = workflow_status.queue_name), CAST(${PERIOD_MS} AS BIGINT)))`;

/** Whether something still refers to the row of a workflow that has ended. */
export const isNeeded: Sql = sql`(${hasActiveParent} OR ${isRecentOccurrence} OR ${isCountedStart})`;

/** Cancels the active workflows and returns their IDs. */
export async function cancelIfActive(database: Database, workflowIDs: readonly string[]): Promise<string[]> {
  const statement = sql`
    UPDATE ${workflows}
    SET ${cancellation}
    WHERE workflow_uuid ${oneOf(workflowIDs)}
      AND ${unindexed(isActive())}
    RETURNING workflow_uuid`;
  const cancelled = await runNoted(database, { source: 'global timeout' }, statement);
  return cancelled.map((row) => row['workflow_uuid'] as string);
}

/** Rows that one statement may count. */
const COUNTED_MAX = 20_000;

/** The creation time of the `count`-th newest workflow; undefined if there are fewer. Counts in bounded steps. */
export async function findNthNewest(
  database: Database,
  count: number,
  applicationName: string | null,
): Promise<number | undefined> {
  let left = count;
  let before = Number.MAX_SAFE_INTEGER;
  for (;;) {
    const newest = sql`
      SELECT w.created_at
      FROM ${workflows} AS w
      WHERE w.created_at < ${before} AND ${isOwn(applicationName)}
      ORDER BY w.created_at DESC
      LIMIT ${Math.min(left, COUNTED_MAX)}`;
    const [row] = await database.read(sql`
      SELECT COUNT(*) AS counted, MIN(n.created_at) AS earliest FROM (${newest}) AS n`);
    const counted = (row?.['counted'] ?? 0) as number;
    if (counted === 0) return undefined;
    const earliest = row?.['earliest'] as number;
    if (counted === left) return earliest;
    if (counted < COUNTED_MAX) return undefined;
    left -= await countBetween(database, { from: earliest, before, applicationName });
    // Workflows of the same millisecond are counted together.
    if (left <= 0) return earliest;
    before = earliest;
  }
}

interface TimeRange {
  readonly from: number;
  readonly before: number;
  readonly applicationName: string | null;
}

async function countBetween(database: Database, { from, before, applicationName }: TimeRange): Promise<number> {
  const [row] = await database.read(sql`
    SELECT COUNT(*) AS counted
    FROM ${workflows} AS w
    WHERE w.created_at >= ${from} AND w.created_at < ${before} AND ${isOwn(applicationName)}`);
  return row?.['counted'] as number;
}

/** A table whose rows may outlive their workflow. */
type PayloadTable = 'workflow_input' | 'workflow_output' | 'operation_outputs';

export interface AgedPayload extends AgeCursor {
  readonly isOrphan: boolean;
}

/** The tables that may have orphans: checkpoints cannot while a foreign key or a trigger keeps them to their workflow. */
export async function findPayloadTables(database: Database): Promise<PayloadTable[]> {
  const { dialect } = database;
  if (lacks(database, 'workflow_input')) return [];
  if (dialect.name === 'sqlite') return ['workflow_input', 'workflow_output'];
  const keys = await database.read(sql`
    SELECT c.conname AS name
    FROM pg_constraint AS c
    WHERE c.conrelid = CAST(${dialect.table('operation_outputs')} AS regclass) AND c.contype = 'f'
    UNION ALL
    SELECT t.tgname AS name
    FROM pg_trigger AS t
    WHERE t.tgrelid = CAST(${dialect.table('operation_outputs')} AS regclass) AND t.tgname = 'everstep_step_checked'`);
  return keys.length > 0
    ? ['workflow_input', 'workflow_output']
    : ['workflow_input', 'workflow_output', 'operation_outputs'];
}

/** The oldest rows of a range. Uses the index on the table's retention timestamps, except for checkpoints. */
export async function listPayloadsByAge(
  database: Database,
  name: PayloadTable,
  range: AgeRange,
): Promise<AgedPayload[]> {
  if (name === 'operation_outputs') return listCheckpoints(database, range);
  const { after, before, limit } = range;
  const found = await database.read(sql`
    SELECT p.workflow_uuid, p.retention_timestamp, CASE WHEN EXISTS (
      SELECT 1 FROM ${workflows} AS w WHERE w.workflow_uuid = p.workflow_uuid) THEN 0 ELSE 1 END AS is_orphan
    FROM ${table(name)} AS p
    WHERE p.retention_timestamp >= ${after.at}
      AND (p.retention_timestamp > ${after.at} OR p.workflow_uuid > ${after.workflowID})
      AND p.retention_timestamp < ${before}
    ORDER BY p.retention_timestamp, p.workflow_uuid
    LIMIT ${limit}`);
  return found.map((row) => ({
    workflowID: row['workflow_uuid'] as string,
    at: row['retention_timestamp'] as number,
    isOrphan: row['is_orphan'] === 1,
  }));
}

/**
 * The workflows that have checkpoints, by their IDs: an index on the age of checkpoints would cost a write for each. Skips
 * from ID to ID in the primary key.
 */
async function listCheckpoints(database: Database, { after, before, limit }: AgeRange): Promise<AgedPayload[]> {
  const next = (id: Sql): Sql => sql`
    SELECT p.workflow_uuid FROM ${steps} AS p WHERE p.workflow_uuid > ${id} ORDER BY p.workflow_uuid LIMIT 1`;
  const found = await database.read(sql`
    WITH RECURSIVE ids(id, n) AS (
      SELECT (${next(sql`${after.workflowID}`)}), 1
      UNION ALL
      SELECT (${next(sql`ids.id`)}), ids.n + 1 FROM ids WHERE ids.id IS NOT NULL AND ids.n < ${limit}
    )
    SELECT ids.id, CASE WHEN EXISTS (
      SELECT 1 FROM ${workflows} AS w WHERE w.workflow_uuid = ids.id
    ) OR (SELECT MAX(p.retention_timestamp) FROM ${steps} AS p WHERE p.workflow_uuid = ids.id) >= ${before} THEN 0 ELSE 1 END AS is_orphan
    FROM ids
    WHERE ids.id IS NOT NULL`);
  return found.map((row) => ({ workflowID: row['id'] as string, at: after.at, isOrphan: row['is_orphan'] === 1 }));
}

/** Deletes the payloads of deleted workflows. */
export async function deleteOrphans(database: Database, workflowIDs: readonly string[]): Promise<void> {
  await database.commit(deletePayloads(database, workflowIDs));
}
