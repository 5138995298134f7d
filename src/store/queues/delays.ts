// Workflows that wait for their time or their turn: making the due ones ready, and moving them forth and back.
import { lock, nowMs, sql, table } from '../../sql/sql.js';
import type { Database, Row } from '../database.js';
import { isActive, isWaiting, unindexed } from '../runs/states.js';

const workflows = table('workflow_status');
const isStillDelayed = unindexed(sql`status = 'DELAYED'`);

/** A queue in which workflows have become ready; with the partition, if they have one. */
export interface Ready {
  readonly queueName: string;
  readonly partitionKey: string | null;
}

/**
 * Enqueues delayed workflows of the application whose time has come, at most `limit` of them. A debounced one gives its
 * key back, so that the next call with that key begins a new one.
 */
export async function enqueueDue(database: Database, applicationName: string, limit: number): Promise<Ready[]> {
  // Rides idx_workflow_status_delayed.
  const ready = await database.run(sql`
    WITH picked AS MATERIALIZED (
      SELECT w.workflow_uuid AS id
      FROM ${workflows} AS w
      WHERE w.status = 'DELAYED' AND w.delay_until_epoch_ms <= ${nowMs}
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

function toReady(row: Row): Ready {
  return {
    queueName: row['queue_name'] as string,
    partitionKey: row['queue_partition_key'] as string | null,
  };
}

/** How long until the next delayed workflow is due by the database's clock; undefined when there is none. */
export async function msToNextDue(database: Database, applicationName: string): Promise<number | undefined> {
  const [row] = await database.read(sql`
    SELECT w.delay_until_epoch_ms - ${nowMs} AS remaining
    FROM ${workflows} AS w
    WHERE w.status = 'DELAYED' AND w.delay_until_epoch_ms IS NOT NULL
      AND (w.application_name = ${applicationName} OR w.application_name IS NULL)
    ORDER BY w.delay_until_epoch_ms
    LIMIT 1`);
  return row?.['remaining'] as number | undefined;
}

/** How long to wait from now on, or until when. */
export type Delay = { readonly delayMs: number } | { readonly untilMs: number };

/** Delays a workflow that waits in a queue or for its time. Tells whether there was one to delay. */
export async function delayIfWaiting(database: Database, workflowID: string, delay: Delay): Promise<boolean> {
  const until = 'delayMs' in delay ? sql`${nowMs} + CAST(${delay.delayMs} AS BIGINT)` : sql`${delay.untilMs}`;
  const delayed = await database.run(sql`
    UPDATE ${workflows}
    SET status = 'DELAYED', delay_until_epoch_ms = ${until}, updated_at = ${nowMs}
    WHERE workflow_uuid = ${workflowID} AND ${isWaiting()}
    RETURNING workflow_uuid`);
  return delayed.length > 0;
}

/** Gives a workflow that has not ended another priority. Tells where it waits, if it waits in a queue. */
export async function setPriorityIfActive(
  database: Database,
  workflowID: string,
  priority: number,
): Promise<Ready | undefined> {
  const [row] = await database.run(sql`
    UPDATE ${workflows}
    SET priority = ${priority}, updated_at = ${nowMs}
    WHERE workflow_uuid = ${workflowID}
      AND ${unindexed(isActive())}
    RETURNING status, queue_name, queue_partition_key`);
  return row?.['status'] === 'ENQUEUED' ? toReady(row) : undefined;
}
