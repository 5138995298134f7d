// Starts a workflow again under its ID, with new arguments and without a history.
import { nowMs, sql, table } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';
import { type Owned } from './lifecycle.js';
import { INTERNAL_QUEUE } from '../../features/queue/queue.js';
import { isPending } from './states.js';

export interface Continuation extends Owned {
  /** A fresh token, to recognise what this call did. */
  readonly creator: string;
  readonly inputs: string;
  readonly serialization: string;
}

const workflows = table('workflow_status');

/** In one commit. False if the run no longer owns the workflow. May be repeated. */
export async function continueIfOwned(database: Database, continuation: Continuation): Promise<boolean> {
  const { workflowID, owner, creator, inputs, serialization } = continuation;
  return database.transaction(async (tx) => {
    const continued = await tx.run(sql`
      UPDATE ${workflows}
      SET status = 'ENQUEUED', inputs = ${inputs}, serialization = ${serialization}, creator_xid = ${creator},
        owner_xid = NULL, recovery_attempts = 0, updated_at = ${nowMs},
        started_at_epoch_ms = CASE WHEN rate_limited = TRUE THEN started_at_epoch_ms END,
        queue_name = COALESCE(queue_name, ${INTERNAL_QUEUE})
      WHERE workflow_uuid = ${workflowID} AND owner_xid = ${owner} AND ${isPending()}
      RETURNING workflow_uuid`);
    if (continued.length === 0) {
      const [row] = await tx.run(sql`SELECT creator_xid FROM ${workflows} WHERE workflow_uuid = ${workflowID}`);
      return row?.['creator_xid'] === creator;
    }
    for (const name of ['operation_outputs', 'step_attempts', 'workflow_input']) {
      await tx.run(sql`DELETE FROM ${table(name)} WHERE workflow_uuid = ${workflowID}`);
    }
    return true;
  });
}
