// The rows of `operation_outputs`: a step's checkpoint, written once by the run that owns the workflow.
import type { StepRecord } from '../model/records.js';
import { lock, oneOf, rows, type Sql, sql, table } from '../sql/sql.js';
import { stepColumns } from './columns.js';
import type { Database } from './database.js';
import { isPending } from './workflows.js';

/** A checkpoint together with the token under which its run owns the workflow. */
export interface Checkpoint {
  readonly owner: string;
  readonly step: StepRecord;
  /** The child that the checkpoint speaks of. It is only written if this very start has created it. */
  readonly child?: { readonly workflowID: string; readonly creator: string };
}

const checkpointColumns = [
  ...stepColumns.columns,
  { name: 'owner_xid', type: 'text' },
  { name: 'child_id', type: 'text' },
  { name: 'child_creator', type: 'text' },
] as const;
const passedColumns = stepColumns.pass('r');
const selectedColumns = stepColumns.select('o');
const lockedAgainstTakeOver = lock('share', 'w');
/** With a lock the planner looks up each row; without one it may read the whole table into a hash first. */
const lockedAgainstHashing = lock('share', 'c');
const steps = table('operation_outputs');
const workflows = table('workflow_status');

/**
 * Records the checkpoints of runs that own their workflows and returns their keys. The workflow's row is locked
 * against a take-over until the commit, so that no checkpoint of a former owner can slip in after one.
 */
export function insertCheckpoints(checkpoints: readonly Checkpoint[]): Sql {
  const data = checkpoints.map(({ owner, step, child }) => [
    ...stepColumns.toValues(step),
    owner,
    child?.workflowID ?? null,
    child?.creator ?? null,
  ]);
  return sql`
    INSERT INTO ${steps} (${stepColumns.names})
    SELECT ${passedColumns}
    FROM ${rows('r', checkpointColumns, data)}
    WHERE EXISTS (
      SELECT 1
      FROM ${workflows} AS w
      WHERE w.workflow_uuid = r.workflow_uuid AND w.owner_xid = r.owner_xid AND ${isPending}
      ${lockedAgainstTakeOver})
      AND (r.child_id IS NULL OR EXISTS (
        SELECT 1
        FROM ${workflows} AS c
        WHERE c.workflow_uuid = r.child_id AND c.creator_xid = r.child_creator
        ${lockedAgainstHashing}))
    ON CONFLICT DO NOTHING
    RETURNING workflow_uuid, function_id`;
}

/** All checkpoints of the workflows, by workflow and step. */
export async function loadSteps(database: Database, workflowIDs: readonly string[]): Promise<StepRecord[]> {
  const found = await database.read(sql`
    SELECT ${selectedColumns}
    FROM ${steps} AS o
    WHERE o.workflow_uuid ${oneOf(workflowIDs)}
    ORDER BY o.workflow_uuid, o.function_id`);
  return found.map((row) => stepColumns.toRecord(row));
}
