// Deletes workflows that retention is done with, and keeps where their archived copies are.
import { nowMs, oneOf, rows, type Sql, sql, table } from '../../sql/sql.js';
import type { Database } from '../database.js';
import { hasEnded } from '../runs/states.js';
import { deletePayloads } from './deletion.js';
import { isNeeded } from './retention.js';

/** A workflow as it was read. */
export interface SeenWorkflow {
  readonly workflowID: string;
  readonly updatedAt: number;
}

const workflows = table('workflow_status');
const archived = table('archived_workflows');
const SEEN = [
  { name: 'seen_id', type: 'text' },
  { name: 'seen_at', type: 'bigint' },
] as const;

/** Those that have not changed since they were seen, and that nothing needs any more. */
function isUnchanged(seen: readonly SeenWorkflow[]): Sql {
  const data = seen.map(({ workflowID, updatedAt }) => [workflowID, updatedAt]);
  return sql`workflow_uuid ${oneOf(seen.map(({ workflowID }) => workflowID))} AND ${hasEnded()} AND NOT ${isNeeded}
        AND (workflow_uuid, updated_at) IN (SELECT r.seen_id, r.seen_at FROM ${rows('r', SEEN, data)})`;
}

/** The workflows that can be deleted. */
export async function findDeletable(database: Database, seen: readonly SeenWorkflow[]): Promise<SeenWorkflow[]> {
  const found = await database.read(sql`SELECT workflow_uuid FROM ${workflows} WHERE ${isUnchanged(seen)}`);
  const ids = new Set(found.map((row) => row['workflow_uuid']));
  return seen.filter(({ workflowID }) => ids.has(workflowID));
}

/** Deletes them with all their data, and notes the object that holds their copies, in one commit. Returns their IDs. */
export async function deleteUnchanged(
  database: Database,
  seen: readonly SeenWorkflow[],
  objectName: string | undefined,
): Promise<string[]> {
  return database.transaction(async (tx) => {
    const deleted = await tx.run(sql`DELETE FROM ${workflows} WHERE ${isUnchanged(seen)} RETURNING workflow_uuid`);
    const ids = deleted.map((row) => row['workflow_uuid'] as string);
    if (ids.length === 0) return ids;
    if (objectName !== undefined) await tx.run(noteArchived(ids, objectName));
    for (const statement of deletePayloads(tx, ids)) await tx.run(statement);
    return ids;
  });
}

function noteArchived(workflowIDs: readonly string[], objectName: string): Sql {
  const columns = [
    { name: 'workflow_uuid', type: 'text' },
    { name: 'object_name', type: 'text' },
  ] as const;
  return sql`
    INSERT INTO ${archived} (workflow_uuid, object_name, archived_at)
    SELECT r.workflow_uuid, r.object_name, ${nowMs}
    FROM ${rows(
      'r',
      columns,
      workflowIDs.map((id) => [id, objectName]),
    )}
    WHERE TRUE
    ON CONFLICT (workflow_uuid) DO UPDATE SET object_name = excluded.object_name, archived_at = excluded.archived_at`;
}

/** The object that holds the latest copy of a workflow. */
export async function findArchived(database: Database, workflowID: string): Promise<string | undefined> {
  const [row] = await database.read(
    sql`SELECT a.object_name FROM ${archived} AS a WHERE a.workflow_uuid = ${workflowID}`,
  );
  return row?.['object_name'] as string | undefined;
}

/** The characters that workflows and their steps hold, as an estimate of the space they take. */
export async function countCharacters(database: Database, workflowIDs: readonly string[]): Promise<number> {
  const [row] = await database.read(sql`
    SELECT COALESCE((
      SELECT SUM(COALESCE(LENGTH(w.inputs), 0) + COALESCE(LENGTH(w.output), 0) + COALESCE(LENGTH(w.error), 0))
      FROM ${workflows} AS w
      WHERE w.workflow_uuid ${oneOf(workflowIDs)}), 0) + COALESCE((
      SELECT SUM(COALESCE(LENGTH(s.output), 0) + COALESCE(LENGTH(s.error), 0))
      FROM ${table('operation_outputs')} AS s
      WHERE s.workflow_uuid ${oneOf(workflowIDs)}), 0) AS characters`);
  return Number(row?.['characters'] ?? 0);
}
