// Delayed and enqueued workflows: enqueueing those that are due, and changing delays and priorities.
import { lock, nowMs, searchableNowMs, sql, table } from '../../kernel/sql/sql.js';
import type { Database, Row } from '../../database/database.js';
import { type ChangeNote, runNoted } from '../history/notes.sql.js';
import { isParked } from '../parking/parked.sql.js';
import { isActive, isWaiting, unindexed } from '../../run/rows/states.js';

const workflows = table('workflow_status');
const isStillDelayed = unindexed(sql`status = 'DELAYED'`);

/** A queue, and partition if any, in which workflows are now ready to be claimed. */
export interface Ready {
  readonly queueName: string;
  readonly partitionKey: string | null;
}

/**
 * Enqueues up to `limit` delayed workflows of the application that are due. A debounced one releases its key, so that the
 * next call with that key creates a new workflow.
 */
export async function enqueueDue(database: Database, applicationName: string, limit: number): Promise<Ready[]> {
  // Uses idx_workflow_status_delayed.
  const ready = await database.run(sql`
    WITH picked AS MATERIALIZED (
      SELECT w.workflow_uuid AS id
      FROM ${workflows} AS w
      WHERE w.status = 'DELAYED' AND w.delay_until_epoch_ms <= ${searchableNowMs}
        AND (w.application_name = ${applicationName} OR w.application_name IS NULL)
      ORDER BY w.delay_until_epoch_ms
      LIMIT ${limit}
      ${lock('skip', 'w')}
    )
    UPDATE ${workflows}
    SET status = 'ENQUEUED', updated_at = ${nowMs},
      deduplication_id = CASE WHEN is_debounced = TRUE THEN NULL ELSE deduplication_id END
    FROM picked
    WHERE workflow_uuid = picked.id AND delay_until_epoch_ms <= ${nowMs}
      AND ${isStillDelayed}
    RETURNING queue_name, queue_partition_key`);
  return ready.map(toReady);
}

export function toReady(row: Row): Ready {
  return {
    queueName: row['queue_name'] as string,
    partitionKey: row['queue_partition_key'] as string | null,
  };
}

/** Time until the next delayed workflow is due by the database clock; undefined if there is none. */
export async function msToNextDue(database: Database, applicationName: string): Promise<number | undefined> {
  const [row] = await database.read(sql`
    SELECT w.delay_until_epoch_ms AS due, ${nowMs} AS now
    FROM ${workflows} AS w
    WHERE w.status = 'DELAYED' AND w.delay_until_epoch_ms IS NOT NULL
      AND (w.application_name = ${applicationName} OR w.application_name IS NULL)
    ORDER BY w.delay_until_epoch_ms
    LIMIT 1`);
  // Subtracted here: the server fails on a difference that is out of range.
  return row && Number(row['due']) - Number(row['now']);
}

/** A delay from now, or a point in time. */
export type Delay = ({ readonly delayMs: number } | { readonly untilMs: number }) & { readonly note?: ChangeNote };

/**
 * Delays a workflow that is enqueued or delayed; false if there is none. What a parked one waits for is its own affair, as it
 * is in memory. One that was parked and is enqueued again is delayed like any other: the run that parked it has lost it.
 */
export async function delayIfWaiting(database: Database, workflowID: string, delay: Delay): Promise<boolean> {
  const until = 'delayMs' in delay ? sql`${nowMs} + CAST(${delay.delayMs} AS BIGINT)` : sql`${delay.untilMs}`;
  const statement = sql`
    UPDATE ${workflows}
    SET status = 'DELAYED', delay_until_epoch_ms = ${until}, owner_xid = NULL, updated_at = ${nowMs}
    WHERE workflow_uuid = ${workflowID} AND ${isWaiting()} AND NOT ${isParked()}
    RETURNING workflow_uuid`;
  const delayed = await runNoted(database, delay.note, statement);
  return delayed.length > 0;
}

/** A workflow with a new priority. */
export interface Prioritized {
  /** The queue in which it waits to be claimed; undefined if it is delayed or running. */
  readonly ready: Ready | undefined;
}

/** Changes the priority of a workflow that has not ended; undefined if there is none. */
export async function setPriorityIfActive(
  database: Database,
  {
    workflowID,
    priority,
    note,
  }: { readonly workflowID: string; readonly priority: number; readonly note?: ChangeNote },
): Promise<Prioritized | undefined> {
  const statement = sql`
    UPDATE ${workflows}
    SET priority = ${priority}, updated_at = ${nowMs}
    WHERE workflow_uuid = ${workflowID}
      AND ${unindexed(isActive())}
    RETURNING status, queue_name, queue_partition_key`;
  const [row] = await runNoted(database, note, statement);
  return row && { ready: row['status'] === 'ENQUEUED' ? toReady(row) : undefined };
}
