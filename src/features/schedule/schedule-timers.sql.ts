// When schedules fire next, as the view of timers shows it. Nothing depends on it.
import { nowMs, rows, type Sql, sql, table } from '../../kernel/sql/sql.js';
import { TableColumns } from '../../database/columns.js';

export interface ScheduleTimer {
  readonly scheduleID: string;
  /** The time of the occurrence. */
  readonly dueAt: number;
  /** With its jitter. */
  readonly fireAt: number;
}

const columns = new TableColumns<ScheduleTimer>([
  ['scheduleID', 'schedule_id', 'text'],
  ['dueAt', 'due_at', 'bigint'],
  ['fireAt', 'fire_at', 'bigint'],
]);

/** Writes what differs from what a peer has written. In the order of their IDs: other engines write the same rows. */
export function upsertScheduleTimers(timers: readonly ScheduleTimer[]): Sql {
  const ordered = timers.toSorted((a, b) => (a.scheduleID < b.scheduleID ? -1 : 1));
  return sql`
    INSERT INTO ${table('schedule_timers')} AS t (schedule_id, due_at, fire_at, created_at)
    SELECT s.schedule_id, r.due_at, r.fire_at, ${nowMs}
    FROM ${rows(
      'r',
      columns.columns,
      ordered.map((timer) => columns.toValues(timer)),
    )}
    JOIN ${table('workflow_schedules')} AS s ON s.schedule_id = r.schedule_id
    WHERE TRUE
    ON CONFLICT (schedule_id) DO UPDATE
    SET due_at = excluded.due_at, fire_at = excluded.fire_at, created_at = excluded.created_at
    WHERE t.due_at <> excluded.due_at OR t.fire_at <> excluded.fire_at`;
}
