// Parents and children of workflows.
import { oneOf, sql, table } from '../../kernel/sql/sql.js';
import type { WorkflowStatusString } from '../../kernel/workflow/status.js';
import type { Database, Row } from '../../database/database.js';
import { seenStatus } from '../parking/parked.sql.js';

export interface FamilyMember {
  readonly workflowID: string;
  readonly parentWorkflowID: string | null;
  readonly name: string;
  readonly status: WorkflowStatusString;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly completedAt: number | null;
}

const workflows = table('workflow_status');
const columns = sql`w.workflow_uuid, w.parent_workflow_id, w.name, ${seenStatus('w')} AS status, w.created_at, w.started_at_epoch_ms,
  w.completed_at`;

export async function findMembers(database: Database, workflowIDs: readonly string[]): Promise<FamilyMember[]> {
  const found = await database.read(sql`
    SELECT ${columns}
    FROM ${workflows} AS w
    WHERE w.workflow_uuid ${oneOf(workflowIDs)}`);
  return found.map(toMember);
}

/** Up to `limit` children of these workflows. Uses idx_workflow_status_parent_workflow_id. */
export async function findChildren(
  database: Database,
  parentIDs: readonly string[],
  limit: number,
): Promise<FamilyMember[]> {
  const found = await database.read(sql`
    SELECT ${columns}
    FROM ${workflows} AS w
    WHERE w.parent_workflow_id IS NOT NULL AND w.parent_workflow_id ${oneOf(parentIDs)}
    LIMIT ${limit}`);
  return found.map(toMember);
}

function toMember(row: Row): FamilyMember {
  const time = (value: unknown): number | null => (value === null ? null : Number(value));
  return {
    workflowID: row['workflow_uuid'] as string,
    parentWorkflowID: row['parent_workflow_id'] as string | null,
    name: row['name'] as string,
    status: row['status'] as WorkflowStatusString,
    createdAt: Number(row['created_at']),
    startedAt: time(row['started_at_epoch_ms']),
    completedAt: time(row['completed_at']),
  };
}
