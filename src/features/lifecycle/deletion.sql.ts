// Deletes workflows in any state. Foreign keys cascade to events, streams and messages. Separate inputs and outputs have
// none, and a server may lack the trigger that deletes checkpoints, so those are deleted here.
import { storableText } from '../../kernel/base/storable-text.js';
import { nowMs, oneOf, rows, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Database, Executor } from '../../database/database.js';
import { lacks } from '../../database/lacking.js';

/** A deleted workflow. */
export interface Deleted {
  readonly workflowID: string;
  readonly workflowName: string | null;
  readonly wasRunning: boolean;
  readonly queueName: string | null;
  readonly partitionKey: string | null;
}

const workflows = table('workflow_status');

export interface DeletionOptions {
  /** Whether to delete their descendants, too. */
  readonly children?: boolean | undefined;
  /** Stays in the journal if it says anything. */
  readonly note?: { readonly reason?: string | undefined; readonly actor?: string | undefined };
}

/** Deletes the existing workflows in one commit. */
export async function deleteWorkflows(
  database: Database,
  workflowIDs: readonly string[],
  { children = false, note = {} }: DeletionOptions = {},
): Promise<Deleted[]> {
  return database.transaction(async (tx) => {
    const deleted = await deleteFrom(tx, children ? deleteTrees(workflowIDs) : deleteEach(workflowIDs));
    // Children started meanwhile. A deleted parent starts no more.
    for (let parents = deleted; children && parents.length > 0; deleted.push(...parents)) {
      parents = await deleteFrom(tx, deleteTreesBelow(parents.map(({ workflowID }) => workflowID)));
    }
    const deletedIDs = deleted.map(({ workflowID }) => workflowID);
    if (deletedIDs.length > 0) for (const statement of deletePayloads(tx, deletedIDs)) await tx.run(statement);
    const isNoted = (note.reason ?? note.actor) !== undefined && !lacks(tx, 'journal');
    if (deleted.length > 0 && isNoted) await tx.run(noteDeleted(deleted, note));
    return deleted;
  });
}

const NOTED = [
  { name: 'workflow_uuid', type: 'text' },
  { name: 'details', type: 'json' },
] as const;

/** After the rows of the journal were deleted with their workflows. */
function noteDeleted(deleted: readonly Deleted[], { reason, actor }: NonNullable<DeletionOptions['note']>): Sql {
  const data = deleted.map(({ workflowID, workflowName }) => [
    workflowID,
    storableText({ workflow_name: workflowName ?? undefined, reason }),
  ]);
  return sql`
    INSERT INTO ${table('journal')} (workflow_id, at, event_type, actor, details)
    SELECT r.workflow_uuid, ${nowMs}, 'WorkflowDeleted', CAST(${actor ?? null} AS TEXT), r.details
    FROM ${rows('r', NOTED, data)}`;
}

async function deleteFrom(tx: Executor, statement: Sql): Promise<Deleted[]> {
  return (await tx.run(statement)).map((row) => ({
    workflowID: row['workflow_uuid'] as string,
    workflowName: row['name'] as string | null,
    wasRunning: row['status'] === 'PENDING',
    queueName: row['queue_name'] as string | null,
    partitionKey: row['queue_partition_key'] as string | null,
  }));
}

const returned = sql`RETURNING workflow_uuid, name, status, queue_name, queue_partition_key`;

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
  const payloads = PAYLOADS.filter((name) => !lacks(executor, name)).map(
    (name) => sql`
      DELETE FROM ${table(name)} AS p
      WHERE p.workflow_uuid ${oneOf(workflowIDs)}
        AND NOT EXISTS (SELECT 1 FROM ${workflows} AS w WHERE w.workflow_uuid = p.workflow_uuid)`,
  );
  return executor.dialect.refused?.has('triggers') ? [...payloads, deleteJournal(workflowIDs)] : payloads;
}

/** A trigger does it, where there are triggers. */
function deleteJournal(workflowIDs: readonly string[]): Sql {
  return sql`
    DELETE FROM ${table('journal')} AS j
    WHERE j.workflow_id ${oneOf(workflowIDs)}
      AND NOT EXISTS (SELECT 1 FROM ${workflows} AS w WHERE w.workflow_uuid = j.workflow_id)`;
}
