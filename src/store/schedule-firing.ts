// Firing the occurrences of schedules exactly once over all processes.
import { nowMs, rows, sql, table } from '../sql/sql.js';
import type { Database } from './database.js';
import { cancelOthersOfSchedule } from './lifecycle.js';
import { insertWorkflows, type NewWorkflow } from './workflows.js';

const schedules = table('workflow_schedules');
const settings = table('schedule_settings');

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
  /** The database's clock. */
  readonly now: number;
}

/**
 * Enqueues the workflows of occurrences, of which each schedule has one, and notes that they were fired: all in one
 * commit. An occurrence that another process has fired, and one of a schedule that is not active any more, is left out.
 */
export async function fireOccurrences(database: Database, given: readonly Firing[]): Promise<Fired> {
  // In one order everywhere: processes that insert the same rows in different orders wait for each other in a circle.
  const firings = given.toSorted((a, b) => (a.workflow.workflowID < b.workflow.workflowID ? -1 : 1));
  const times = firings.map(({ scheduleName, dueAt }) => [scheduleName, new Date(dueAt).toISOString()]);
  const cancelling = firings.filter(({ isCancellingPrevious }) => isCancellingPrevious);
  const results = await database.commit([
    insertWorkflows(
      firings.map(({ workflow }) => workflow),
      mayFire,
    ),
    ...cancelling.map(({ scheduleName, workflow }) => cancelOthersOfSchedule(scheduleName, workflow)),
    sql`
      UPDATE ${schedules} AS s
      SET last_fired_at = r.fired_at
      FROM ${rows('r', FIRED_COLUMNS, times)}
      WHERE s.schedule_name = r.name AND s.status = 'ACTIVE'
        AND (s.last_fired_at IS NULL OR s.last_fired_at < r.fired_at)`,
    sql`SELECT ${nowMs} AS now`,
  ]);
  const [created = [], ...others] = results;
  const cancelled = others.slice(0, cancelling.length).flat();
  return {
    creators: new Set(created.map((row) => row['creator_xid'] as string)),
    cancelledIDs: cancelled.map((row) => row['workflow_uuid'] as string),
    now: Number(results.at(-1)?.[0]?.['now']),
  };
}

const FIRED_COLUMNS = [
  { name: 'name', type: 'text' },
  { name: 'fired_at', type: 'text' },
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
        FROM ${table('workflow_status')} AS o
        WHERE o.schedule_name = g.schedule_name AND o.schedule_name IS NOT NULL
          AND CASE WHEN o.status IN ('PENDING', 'ENQUEUED', 'DELAYED') THEN TRUE ELSE FALSE END)))`;
