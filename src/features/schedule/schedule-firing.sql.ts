// Fires occurrences of schedules exactly once across all processes, and never before they are due by the database clock. A
// process only estimates that clock, and errs if its own clock is changed at the wrong moment. So the statements check the
// time themselves, and return the time before them. Each runs slightly later than the one before, so an occurrence may come
// due in between: it counts as fired if its row exists, not by the clock.
import { OCCURRENCE_KEPT_MS } from './schedule.js';
import { nowMs, rows, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';
import { type EventDispatchState, upsertEventDispatchState } from '../../run/rows/event-dispatch.js';
import { cancelOthersOfSchedule } from '../../run/rows/lifecycle.js';
import { isActive, unindexed } from '../../run/rows/states.js';
import { insertWorkflows, type NewWorkflow } from '../../run/rows/workflows.js';

const schedules = table('workflow_schedules');
const settings = table('schedule_settings');
const workflows = table('workflow_status');

/** An occurrence that is due, and its workflow. */
export interface Firing {
  readonly scheduleName: string;
  readonly dueAt: number;
  readonly isCancellingPrevious: boolean;
  readonly workflow: NewWorkflow;
}

export interface Fired {
  /** Creator tokens of the workflows created by this call. */
  readonly creators: ReadonlySet<string>;
  readonly cancelledIDs: readonly string[];
  /** The database clock before the call. Fire what was not due by then again; firing twice is harmless. */
  readonly now: number;
}

/**
 * Enqueues the workflows of occurrences, one per schedule, and records them as fired, in one commit. Skips occurrences that
 * another process fired, that are not due yet, or whose schedule is no longer active.
 */
export async function fireOccurrences(database: Database, given: readonly Firing[]): Promise<Fired> {
  // The same order in every process: inserting the same rows in different orders would deadlock.
  const firings = given.toSorted((a, b) => (a.workflow.workflowID < b.workflow.workflowID ? -1 : 1));
  const cancelling = firings.filter(({ isCancellingPrevious }) => isCancellingPrevious);
  const [time = [], created = [], ...others] = await database.commit([
    selectNow,
    insertWorkflows(
      firings.map(({ workflow }) => workflow),
      // The CASE keeps the planner from using a join, which might change the order.
      sql`CASE WHEN ${isDue(firings)} AND ${mayFire} AND NOT ${wasFired(firings)} THEN TRUE ELSE FALSE END`,
    ),
    ...cancelling.map(({ scheduleName, workflow }) => cancelOthersOfSchedule(scheduleName, workflow)),
    recordFired(firings),
  ]);
  const cancelled = others.slice(0, cancelling.length).flat();
  return {
    creators: new Set(created.map((row) => row['creator_xid'] as string)),
    cancelledIDs: cancelled.map((row) => row['workflow_uuid'] as string),
    now: Number(time[0]?.['now']),
  };
}

/** The same for a schedule defined in code, whose progress is kept in a dispatch state. */
export async function fireCodeOccurrence(
  database: Database,
  { workflow, dueAt }: Pick<Firing, 'workflow' | 'dueAt'>,
  state: EventDispatchState,
): Promise<Pick<Fired, 'now'>> {
  const isFired = sql`EXISTS (SELECT 1 FROM ${workflows} AS w WHERE w.workflow_uuid = ${workflow.workflowID})`;
  const [time = []] = await database.commit([
    selectNow,
    insertWorkflows([workflow], sql`${isDue([{ workflow, dueAt }])} AND NOT ${wasCodeFired(state, dueAt)}`),
    upsertEventDispatchState(state, isFired),
  ]);
  return { now: Number(time[0]?.['now']) };
}

const selectNow = sql`SELECT ${nowMs} AS now`;

/** True for a row `r` that is due. */
function isDue(firings: readonly Pick<Firing, 'workflow' | 'dueAt'>[]): Sql {
  const times = firings.map(({ workflow, dueAt }) => [workflow.workflowID, dueAt]);
  return sql`r.workflow_uuid IN (SELECT d.id FROM ${rows('d', DUE_COLUMNS, times)} WHERE d.due_at <= ${nowMs})`;
}

/**
 * True for a row `r` that is so old that its workflow may have been collected, and not later than the last one that was
 * fired. It may not have been fired itself if the only engine was paused and another was launched meanwhile; that engine
 * has passed over it as over what came due before its launch.
 */
function wasFired(firings: readonly Firing[]): Sql {
  const times = firings.map(({ workflow, dueAt }) => [workflow.workflowID, dueAt]);
  return sql`(r.workflow_uuid IN (
      SELECT d.id FROM ${rows('d', DUE_COLUMNS, times)} WHERE d.due_at < ${nowMs} - CAST(${OCCURRENCE_KEPT_MS} AS BIGINT))
    AND EXISTS (
      SELECT 1
      FROM ${schedules} AS g
      WHERE g.schedule_name = r.schedule_name AND g.last_fired_at >= ${dueTimeOfRow}))`;
}

/** The workflow ID ends with the time. */
const dueTimeOfRow = sql`SUBSTR(r.workflow_uuid, LENGTH(r.workflow_uuid) - 23)`;

/** The same for a schedule defined in code. */
function wasCodeFired({ service, workflowFnName, key }: EventDispatchState, dueAt: number): Sql {
  return sql`(${dueAt} < ${nowMs} - CAST(${OCCURRENCE_KEPT_MS} AS BIGINT) AND EXISTS (
    SELECT 1
    FROM ${table('event_dispatch_kv')} AS e
    WHERE e.service_name = ${service} AND e.workflow_fn_name = ${workflowFnName} AND e.key = ${key}
      AND CAST(e.value AS BIGINT) >= ${dueAt}))`;
}

const DUE_COLUMNS = [
  { name: 'id', type: 'text' },
  { name: 'due_at', type: 'bigint' },
] as const;

// A skipped occurrence is recorded as fired, so that a process that comes later, when the previous run has ended, skips it
// too. The workflow ID ends with the time. Uses idx_workflow_status_schedule_name.
const mayFire = sql`
  EXISTS (SELECT 1 FROM ${schedules} AS g WHERE g.schedule_name = r.schedule_name AND g.status = 'ACTIVE')
  AND NOT EXISTS (
    SELECT 1
    FROM ${schedules} AS g
    JOIN ${settings} AS p ON p.schedule_id = g.schedule_id AND p.overlap = 'skip'
    WHERE g.schedule_name = r.schedule_name
      AND (g.last_fired_at >= SUBSTR(r.workflow_uuid, LENGTH(r.workflow_uuid) - 23) OR EXISTS (
        SELECT 1
        FROM ${workflows} AS o
        WHERE o.schedule_name = g.schedule_name AND o.schedule_name IS NOT NULL
          AND ${unindexed(isActive('o'))})))`;

/** Records what was fired, and what was skipped because the previous run was still active when it was due. */
function recordFired(firings: readonly Firing[]): Sql {
  const data = firings.map(({ scheduleName, dueAt, workflow }) => {
    return [scheduleName, new Date(dueAt).toISOString(), workflow.workflowID, dueAt];
  });
  return sql`
    UPDATE ${schedules} AS s
    SET last_fired_at = r.fired_at
    FROM ${rows('r', FIRED_COLUMNS, data)}
    WHERE s.schedule_name = r.name AND s.status = 'ACTIVE'
      AND (s.last_fired_at IS NULL OR s.last_fired_at < r.fired_at)
      AND r.due_at <= ${nowMs}
      AND (EXISTS (SELECT 1 FROM ${workflows} AS w WHERE w.workflow_uuid = r.id) OR ${isSkipped})`;
}

const FIRED_COLUMNS = [
  { name: 'name', type: 'text' },
  { name: 'fired_at', type: 'text' },
  { name: 'id', type: 'text' },
  { name: 'due_at', type: 'bigint' },
] as const;

// Uses idx_workflow_status_schedule_name. The offset keeps Postgres from hashing the subquery, which reads all settings.
const isSkipped = sql`EXISTS (
  SELECT 1
  FROM ${settings} AS p
  JOIN ${workflows} AS o ON o.schedule_name = r.name AND o.schedule_name IS NOT NULL
  WHERE p.schedule_id = s.schedule_id AND p.overlap = 'skip'
    AND ${unindexed(sql`${isActive('o')} OR o.completed_at >= r.due_at`)}
  LIMIT 1 OFFSET 0)`;
