// The latest failed workflows, with their errors.
import { sql, table } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';
import { hasFailed } from '../../run/rows/states.js';

export interface FailedWorkflow {
  readonly workflowID: string;
  readonly name: string;
  /** The stored error; null if it is too long to be read for many workflows. */
  readonly error: string | null;
  readonly serialization: string | null;
  readonly createdAt: number;
}

export interface FailureQuery {
  readonly since: number;
  readonly limit: number;
  readonly applicationName: string | null;
  readonly timeoutMs: number;
}

/** Longer errors are not read. */
const ERROR_MAX = 20_000;

const workflows = table('workflow_status');

/** Created since a time, newest first. Uses idx_workflow_status_failed. */
export async function findFailures(database: Database, query: FailureQuery): Promise<FailedWorkflow[]> {
  const { since, limit, applicationName, timeoutMs } = query;
  const inApplication =
    applicationName === null ? sql`` : sql`AND (w.application_name = ${applicationName} OR w.application_name IS NULL)`;
  const found = await database.observe(
    sql`
      SELECT w.workflow_uuid, w.name, CASE WHEN LENGTH(w.error) <= ${ERROR_MAX} THEN w.error END AS error,
        w.serialization, w.created_at
      FROM ${workflows} AS w
      WHERE w.status = 'ERROR' AND ${hasFailed('w')} AND w.created_at >= CAST(${since} AS BIGINT) ${inApplication}
      ORDER BY w.created_at DESC
      LIMIT ${limit}`,
    { timeoutMs, scans: 'index' },
  );
  return found.map((row) => ({
    workflowID: row['workflow_uuid'] as string,
    name: row['name'] as string,
    error: row['error'] as string | null,
    serialization: row['serialization'] as string | null,
    createdAt: Number(row['created_at']),
  }));
}
