// What a parked workflow waits for.
import { sql, table } from '../../sql/sql.js';
import type { Reader } from '../database.js';

/** A message to the workflow, an event of another one, or the outcome of another one. */
export type Awaited =
  | { readonly kind: 'message'; readonly topic: string }
  | { readonly kind: 'event'; readonly workflowID: string; readonly key: string }
  | { readonly kind: 'outcome'; readonly workflowID: string };

const parkedWaits = table('parked_waits');

/** Empty for a workflow that waits for a time only. Uses idx_parked_waits_workflow. */
export async function findAwaited(database: Reader, workflowID: string): Promise<Awaited[]> {
  const found = await database.read(sql`
    SELECT p.wait_key
    FROM ${parkedWaits} AS p
    WHERE p.workflow_uuid = ${workflowID}
    ORDER BY p.wait_key
    LIMIT 100`);
  return found.flatMap((row) => toAwaited(row['wait_key'] as string, workflowID));
}

/** IDs may contain colons, so the key of an event is what follows the last pair. */
function toAwaited(waitKey: string, receiverID: string): Awaited[] {
  const key = waitKey.slice(waitKey.indexOf(':') + 1);
  if (waitKey.startsWith('message:')) return [{ kind: 'message', topic: key.slice(receiverID.length + 2) }];
  if (waitKey.startsWith('outcome:')) return [{ kind: 'outcome', workflowID: key }];
  const split = key.lastIndexOf('::');
  return [{ kind: 'event', workflowID: key.slice(0, split), key: key.slice(split + 2) }];
}
