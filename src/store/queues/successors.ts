// Successors: workflows that an engine has claimed before there is a slot for them. Each starts when a run of that engine
// ends, and the commit that records the outcome of the one notes the start of the other. So the slot is never free, and to
// everyone who counts, as many workflows run after that commit as before.
//
// A successor is PENDING and owned, as if it ran: it is recovered when its engine dies. It has no start time, and does not
// count against limits. Its timeout and its version begin with its start: it may be handed back before.
import { nowMs, rows, type Sql, sql, table } from '../../sql/sql.js';
import type { Reader } from '../database.js';
import { holdsEngineToken } from '../runs/owner-tokens.js';
import { deadlineFromStart, type Owned } from '../runs/lifecycle.js';
import { isInFlight, unindexed } from '../runs/states.js';

const workflows = table('workflow_status');

/** Whether a PENDING row of a queue is a successor. Other libraries may have rows without a start time. */
export function isSuccessor(alias: keyof typeof SUCCESSORS): Sql {
  return SUCCESSORS[alias];
}

const SUCCESSORS = {
  p: sql`(p.started_at_epoch_ms IS NULL AND ${holdsEngineToken(sql`COALESCE(p.owner_xid, '')`)})`,
  w: sql`(w.started_at_epoch_ms IS NULL AND ${holdsEngineToken(sql`COALESCE(w.owner_xid, '')`)})`,
} as const;

/** Whether engines hold successors for the queue. Uses idx_workflow_status_in_flight_v2. */
export async function hasSuccessors(database: Reader, queueName: string): Promise<boolean> {
  const found = await database.read(sql`
    SELECT 1 AS found
    FROM ${workflows} AS p
    WHERE p.queue_name = ${queueName} AND p.status = (SELECT 'PENDING') AND ${isInFlight('p')} AND ${isSuccessor('p')}
    LIMIT 1`);
  return found.length > 0;
}

const columns = [
  { name: 'id', type: 'text' },
  { name: 'owner', type: 'text' },
] as const;

/** Notes that successors have started, after the outcomes of those before them. A short one may have ended as well. */
export function startSuccessors(successors: readonly Owned[], applicationVersion: string): Sql {
  const values = successors.map(({ workflowID, owner }) => [workflowID, owner]);
  return sql`
    UPDATE ${workflows} AS w
    SET started_at_epoch_ms = COALESCE(completed_at, ${nowMs}), updated_at = ${nowMs},
      workflow_deadline_epoch_ms = ${deadlineFromStart}, application_version = ${applicationVersion}
    FROM ${rows('r', columns, values)}
    WHERE w.workflow_uuid = r.id AND w.owner_xid = r.owner AND w.started_at_epoch_ms IS NULL
      AND ${unindexed(sql`w.status IN ('PENDING', 'SUCCESS', 'ERROR')`)}`;
}
