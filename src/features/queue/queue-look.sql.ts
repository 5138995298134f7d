// One look at all queues: what they are, where work waits, and when the next delayed or overdue workflow is due. Engines
// look at intervals in case they missed a notification, so that an idle one costs the database one statement for all this.
import type { QueueRecord } from './queue.js';
import { nowMs, rows, sql, table } from '../../kernel/sql/sql.js';
import type { Database, Row } from '../../database/database.js';
import { isActive, isEnqueued } from '../../run/rows/states.js';
import { queueColumns, toQueueRecord } from './queues.sql.js';

export interface QueueLookOptions {
  readonly applicationName: string;
  /** Queues to look at that may not be stored; at least one. */
  readonly names: readonly string[];
}

export interface QueueLook {
  /** The stored queues of the application and those without one. */
  readonly queues: readonly QueueRecord[];
  /** The queues with enqueued workflows, among the stored ones and the given names. */
  readonly waiting: readonly string[];
  /** Time until the next delayed workflow is due, by the database clock; undefined if there is none. */
  readonly delayMs: number | undefined;
  /** The same for the next deadline of an active workflow. */
  readonly deadlineMs: number | undefined;
}

const queues = table('queues');
const workflows = table('workflow_status');
const NAME_COLUMN = [{ name: 'name', type: 'text' }] as const;

export async function lookAtQueues(
  database: Database,
  { applicationName, names }: QueueLookOptions,
): Promise<QueueLook> {
  // Uses idx_workflow_status_in_flight_v2, idx_workflow_status_delayed and idx_workflow_status_deadline. The range of
  // names lets the index on them serve: our sessions avoid scans of tables.
  const found = await database.read(sql`
    SELECT n.name AS queue_name, ${queueColumns},
      CASE WHEN q.name IS NULL THEN 0 ELSE 1 END AS is_stored,
      CASE WHEN EXISTS (
        SELECT 1 FROM ${workflows} AS w WHERE w.queue_name = n.name AND ${isEnqueued('w')}
      ) THEN 1 ELSE 0 END AS is_waiting,
      (
        SELECT w.delay_until_epoch_ms
        FROM ${workflows} AS w
        WHERE w.status = 'DELAYED' AND w.delay_until_epoch_ms IS NOT NULL
          AND (w.application_name = ${applicationName} OR w.application_name IS NULL)
        ORDER BY w.delay_until_epoch_ms
        LIMIT 1
      ) AS delayed_until,
      (
        SELECT w.workflow_deadline_epoch_ms
        FROM ${workflows} AS w
        WHERE ${isActive('w')} AND w.workflow_deadline_epoch_ms IS NOT NULL
        ORDER BY w.workflow_deadline_epoch_ms
        LIMIT 1
      ) AS deadline,
      ${nowMs} AS now
    FROM (
      SELECT s.name
      FROM ${queues} AS s
      WHERE s.name >= '' AND (s.application_name = ${applicationName} OR s.application_name IS NULL)
      UNION
      SELECT r.name
      FROM ${rows(
        'r',
        NAME_COLUMN,
        names.map((name) => [name]),
      )}
    ) AS n
    LEFT JOIN ${queues} AS q
      ON q.name = n.name AND (q.application_name = ${applicationName} OR q.application_name IS NULL)
    ORDER BY n.name`);
  return {
    queues: found.filter((row) => row['is_stored'] === 1).map(toQueueRecord),
    waiting: found.filter((row) => row['is_waiting'] === 1).map((row) => row['queue_name'] as string),
    delayMs: msUntil(found[0], 'delayed_until'),
    deadlineMs: msUntil(found[0], 'deadline'),
  };
}

/** Subtracted here: the server fails on a difference that is out of range. */
function msUntil(row: Row | undefined, column: string): number | undefined {
  const at = row?.[column] ?? null;
  return at === null ? undefined : Number(at) - Number(row?.['now']);
}
