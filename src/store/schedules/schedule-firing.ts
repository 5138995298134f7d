// Firing the occurrences of schedules exactly once over all processes, and none before it is due by the database's clock.
// A process judges by an estimate of that clock, which is wrong when its own is set at the wrong moment. So the statements
// judge for themselves, and the answer says what time it was before them. Each of them runs a little later than the one
// before, so an occurrence may come due in between: that it was fired is noted if its row is there, not by the clock.
import { nowMs, rows, type Sql, sql, table } from '../../sql/sql.js';
import type { Database } from '../database.js';
import { type EventDispatchState, upsertEventDispatchState } from '../receiving/event-dispatch.js';
import { cancelOthersOfSchedule } from '../runs/lifecycle.js';
import { isActive, unindexed } from '../runs/states.js';
import { insertWorkflows, type NewWorkflow } from '../runs/workflows.js';

const schedules = table('workflow_schedules');
const settings = table('schedule_settings');
const workflows = table('workflow_status');

/** An occurrence that is due, with the workflow that stands for it. */
export interface Firing {
  readonly scheduleName: string;
  readonly dueAt: number;
  readonly isCancellingPrevious: boolean;
  readonly workflow: NewWorkflow;
}

export interface Fired {
  /** The tokens of the workflows that were created by this call. */
  readonly creators: ReadonlySet<string>;
  readonly cancelledIDs: readonly string[];
  /** The database's clock before the call. What was not due by then is to be fired again; if it was fired, no harm is done. */
  readonly now: number;
}

/**
 * Enqueues the workflows of occurrences, of which each schedule has one, and notes that they were fired: all in one
 * commit. ClaimRemainder out is an occurrence that another process has fired, one of a schedule that is not active any more, and
 * one that is not due yet.
 */
export async function fireOccurrences(database: Database, given: readonly Firing[]): Promise<Fired> {
  // In one order everywhere: processes that insert the same rows in different orders wait for each other in a circle.
  const firings = given.toSorted((a, b) => (a.workflow.workflowID < b.workflow.workflowID ? -1 : 1));
  const cancelling = firings.filter(({ isCancellingPrevious }) => isCancellingPrevious);
  const [time = [], created = [], ...others] = await database.commit([
    selectNow,
    insertWorkflows(
      firings.map(({ workflow }) => workflow),
      // In a CASE, which the planner cannot turn into a join: that might change the order.
      sql`CASE WHEN ${isDue(firings)} AND ${mayFire} THEN TRUE ELSE FALSE END`,
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

/** The same for an occurrence of a schedule that stands in the code, whose state says how far it has come. */
export async function fireCodeOccurrence(
  database: Database,
  { workflow, dueAt }: Pick<Firing, 'workflow' | 'dueAt'>,
  state: EventDispatchState,
): Promise<Pick<Fired, 'now'>> {
  const isFired = sql`EXISTS (SELECT 1 FROM ${workflows} AS w WHERE w.workflow_uuid = ${workflow.workflowID})`;
  const [time = []] = await database.commit([
    selectNow,
    insertWorkflows([workflow], isDue([{ workflow, dueAt }])),
    upsertEventDispatchState(state, isFired),
  ]);
  return { now: Number(time[0]?.['now']) };
}

const selectNow = sql`SELECT ${nowMs} AS now`;

/** True for a row `r` whose time has come. */
function isDue(firings: readonly Pick<Firing, 'workflow' | 'dueAt'>[]): Sql {
  const times = firings.map(({ workflow, dueAt }) => [workflow.workflowID, dueAt]);
  return sql`r.workflow_uuid IN (SELECT d.id FROM ${rows('d', DUE_COLUMNS, times)} WHERE d.due_at <= ${nowMs})`;
}

const DUE_COLUMNS = [
  { name: 'id', type: 'text' },
  { name: 'due_at', type: 'bigint' },
] as const;

// An occurrence that is left out is noted as fired: whoever comes later, with the run before at its end, leaves it out
// as well. The end of the workflow's ID is the time. Rides idx_workflow_status_schedule_name.
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

/** Notes what was fired, and what was left out because the run before had not ended when it was due. */
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

// Rides idx_workflow_status_schedule_name.
const isSkipped = sql`EXISTS (
  SELECT 1
  FROM ${settings} AS p
  JOIN ${workflows} AS o ON o.schedule_name = r.name AND o.schedule_name IS NOT NULL
  WHERE p.schedule_id = s.schedule_id AND p.overlap = 'skip'
    AND ${unindexed(sql`${isActive('o')} OR o.completed_at >= r.due_at`)})`;
