// Why workflows were cancelled, as the journal has it.
import { oneOf, sql, table } from '../../kernel/sql/sql.js';
import type { Reader } from '../../database/database.js';

export interface Cancellation {
  readonly workflowID: string;
  readonly isTimeout: boolean;
  readonly reason: string | null;
  readonly actor: string | null;
}

/** The latest cancellation of each of the workflows that have one. Uses the key of the journal. */
export async function findCancellations(
  database: Reader,
  workflowIDs: readonly string[],
): Promise<Map<string, Cancellation>> {
  const found = await database.read(sql`
    SELECT j.workflow_id, j.event_type, j.actor, j.details ->> 'reason' AS reason
    FROM ${table('journal')} AS j
    WHERE j.workflow_id ${oneOf(workflowIDs)} AND j.event_type IN ('WorkflowCancelRequested', 'WorkflowTimedOut')
    ORDER BY j.workflow_id, j.seq`);
  // A later one replaces an earlier one.
  return new Map(
    found.map((row) => [
      row['workflow_id'] as string,
      {
        workflowID: row['workflow_id'] as string,
        isTimeout: row['event_type'] === 'WorkflowTimedOut',
        reason: row['reason'] as string | null,
        actor: row['actor'] as string | null,
      },
    ]),
  );
}
