// Taking workflows from a queue. A claim is one statement: it picks the next rows, makes them this engine's, and returns
// all that is needed to run them.
import type { WorkflowRecord } from '../model/records.js';
import { lock, nowMs, oneOf, sql, table } from '../sql/sql.js';
import { workflowColumns } from './columns.js';
import type { Database } from './database.js';

export interface ClaimOptions {
  readonly queueName: string;
  readonly limit: number;
  /** The fencing token of the claimed workflows, never used before. */
  readonly owner: string;
  readonly executorID: string;
  readonly applicationVersion: string;
  readonly applicationName: string;
  /** Names of the functions that this engine has, as `class.name`. Rows of other functions are left to others. */
  readonly functions: readonly string[];
}

export interface Claimed {
  readonly workflow: WorkflowRecord;
  /** How long the workflow may still run by the database's clock; null without a deadline. */
  readonly remainingMs: number | null;
}

const workflows = table('workflow_status');
const returned = workflowColumns.returning;

/** Claims at most `limit` workflows of the queue: by priority, then in the order of their creation. */
export async function claimWorkflows(database: Database, options: ClaimOptions): Promise<Claimed[]> {
  // Rides idx_workflow_status_in_flight_v2. The picked rows are materialized: the planner must not pick again for each row.
  // The outer condition hides the status from it, or it would walk the whole queue once more for each picked row.
  const claimed = await database.run(sql`
    WITH picked AS MATERIALIZED (
      SELECT w.workflow_uuid AS id
      FROM ${workflows} AS w
      WHERE w.queue_name = ${options.queueName} AND w.status = 'ENQUEUED'
        AND (w.application_version = ${options.applicationVersion} OR (w.application_version IS NULL AND ${isLatest(options)}))
        AND (w.application_name = ${options.applicationName} OR w.application_name IS NULL)
        AND COALESCE(w.class_name, '') || '.' || w.name ${oneOf(options.functions)}
      ORDER BY w.priority, w.created_at, w.workflow_uuid
      LIMIT ${options.limit}
      ${lock('skip', 'w')}
    )
    UPDATE ${workflows}
    SET status = 'PENDING', owner_xid = ${options.owner}, executor_id = ${options.executorID},
      application_version = ${options.applicationVersion},
      application_name = COALESCE(application_name, ${options.applicationName}),
      started_at_epoch_ms = ${nowMs}, updated_at = ${nowMs}, recovery_attempts = recovery_attempts + 1,
      workflow_deadline_epoch_ms = COALESCE(workflow_deadline_epoch_ms, ${nowMs} + workflow_timeout_ms)
    FROM picked
    WHERE workflow_uuid = picked.id AND CASE WHEN status = 'ENQUEUED' THEN TRUE ELSE FALSE END
    RETURNING ${returned}, workflow_deadline_epoch_ms - ${nowMs} AS remaining_ms`);
  return claimed.map((row) => ({
    workflow: workflowColumns.toRecord(row),
    remainingMs: row['remaining_ms'] as number | null,
  }));
}

/** A row without a version goes to the latest one only. */
function isLatest(options: ClaimOptions) {
  return sql`${options.applicationVersion} = (
    SELECT v.version_name
    FROM ${table('application_versions')} AS v
    WHERE v.application_name = ${options.applicationName} OR v.application_name IS NULL
    ORDER BY v.version_timestamp DESC, v.version_id DESC
    LIMIT 1)`;
}

/** Inputs that another library has stored in a table of their own, by workflow ID. */
export async function findSeparateInputs(
  database: Database,
  workflowIDs: readonly string[],
): Promise<Map<string, string>> {
  const found = await database.read(sql`
    SELECT i.workflow_uuid, i.inputs
    FROM ${table('workflow_input')} AS i
    WHERE i.workflow_uuid ${oneOf(workflowIDs)}`);
  return new Map(found.map((row) => [row['workflow_uuid'] as string, row['inputs'] as string]));
}
