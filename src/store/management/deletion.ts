// Deletes workflows in any state. Foreign keys cascade to events, streams and messages. Separate inputs and outputs have
// none, and checkpoints lost theirs in databases that another library migrated, so those are deleted here.
import { oneOf, type Sql, sql, table } from '../../sql/sql.js';
import type { Database, Executor } from '../database.js';
import { lacks } from '../lacking.js';

/** A deleted workflow. */
export interface Deleted {
  readonly workflowID: string;
  readonly wasRunning: boolean;
  readonly queueName: string | null;
  readonly partitionKey: string | null;
}

const workflows = table('workflow_status');

/** Deletes the existing workflows, with their descendants if asked to, in one commit. */
export async function deleteWorkflows(
  database: Database,
  workflowIDs: readonly string[],
  { children = false } = {},
): Promise<Deleted[]> {
  return database.transaction(async (tx) => {
    const deleted = await deleteFrom(tx, children ? deleteTrees(workflowIDs) : deleteEach(workflowIDs));
    // Children started meanwhile. A deleted parent starts no more.
    for (let parents = deleted; children && parents.length > 0; deleted.push(...parents)) {
      parents = await deleteFrom(tx, deleteTreesBelow(parents.map(({ workflowID }) => workflowID)));
    }
    const deletedIDs = deleted.map(({ workflowID }) => workflowID);
    if (deletedIDs.length > 0) for (const statement of deletePayloads(tx, deletedIDs)) await tx.run(statement);
    return deleted;
  });
}

async function deleteFrom(tx: Executor, statement: Sql): Promise<Deleted[]> {
  return (await tx.run(statement)).map((row) => ({
    workflowID: row['workflow_uuid'] as string,
    wasRunning: row['status'] === 'PENDING',
    queueName: row['queue_name'] as string | null,
    partitionKey: row['queue_partition_key'] as string | null,
  }));
}

const returned = sql`RETURNING workflow_uuid, status, queue_name, queue_partition_key`;

function deleteEach(workflowIDs: readonly string[]): Sql {
  return sql`DELETE FROM ${workflows} WHERE workflow_uuid ${oneOf(workflowIDs)} ${returned}`;
}

function deleteTrees(workflowIDs: readonly string[]): Sql {
  return deleteDownFrom(sql`SELECT w.workflow_uuid FROM ${workflows} AS w WHERE w.workflow_uuid ${oneOf(workflowIDs)}`);
}

function deleteTreesBelow(parentIDs: readonly string[]): Sql {
  return deleteDownFrom(
    sql`SELECT w.workflow_uuid FROM ${workflows} AS w WHERE w.parent_workflow_id ${oneOf(parentIDs)}`,
  );
}

// Uses idx_workflow_status_parent_workflow_id for each level.
function deleteDownFrom(roots: Sql): Sql {
  return sql`
    WITH RECURSIVE tree(id) AS (
      ${roots}
      UNION
      SELECT c.workflow_uuid FROM tree JOIN ${workflows} AS c ON c.parent_workflow_id = tree.id
    )
    DELETE FROM ${workflows} WHERE workflow_uuid IN (SELECT id FROM tree) ${returned}`;
}

const PAYLOADS = ['workflow_input', 'workflow_output', 'operation_outputs'];

/** Deletes the payloads of deleted workflows. Those of existing workflows stay. */
export function deletePayloads(executor: Executor, workflowIDs: readonly string[]): Sql[] {
  return PAYLOADS.filter((name) => !lacks(executor, name)).map(
    (name) => sql`
      DELETE FROM ${table(name)} AS p
      WHERE p.workflow_uuid ${oneOf(workflowIDs)}
        AND NOT EXISTS (SELECT 1 FROM ${workflows} AS w WHERE w.workflow_uuid = p.workflow_uuid)`,
  );
}
