// How many workflows of a queue were claimed lately.
import { searchableNowMs, sql, table } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';

const workflows = table('workflow_status');

/** Claimed in the last `periodMs`, and not claimed again since. Uses idx_workflow_status_started_at. */
export async function countClaimed(database: Database, queueName: string, periodMs: number): Promise<number> {
  // The time is read once, in a subquery: an index cannot be searched for a clock that advances from row to row.
  const [row] = await database.read(sql`
    SELECT COUNT(*) AS claimed
    FROM ${workflows} AS w
    WHERE w.started_at_epoch_ms IS NOT NULL AND w.started_at_epoch_ms > ${searchableNowMs} - CAST(${periodMs} AS BIGINT)
      AND w.queue_name = ${queueName}`);
  return Number(row?.['claimed'] ?? 0);
}
