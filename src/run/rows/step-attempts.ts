// Rows of `step_attempts`: how often a step that is retried has failed, and when its next attempt is due.
import { rows, sql, table } from '../../kernel/sql/sql.js';
import { TableColumns } from '../../database/columns.js';
import type { Database, Reader } from '../../database/database.js';
import type { Owned } from './lifecycle.js';
import { isOwned } from './workflows.js';

export interface FailedAttempts extends Owned {
  readonly stepID: number;
  readonly attempts: number;
  /** By the database's clock. */
  readonly retryAt: number;
  /** The latest errors, encoded. */
  readonly errors: string;
}

const attempts = table('step_attempts');

const attemptColumns = new TableColumns<FailedAttempts>([
  ['workflowID', 'workflow_uuid', 'text'],
  ['owner', 'owner_xid', 'text'],
  ['stepID', 'function_id', 'int'],
  ['attempts', 'attempts', 'int'],
  ['retryAt', 'retry_at_epoch_ms', 'bigint'],
  ['errors', 'errors', 'text'],
]);

/** False if the run no longer owns the workflow. May be repeated. */
export async function recordFailedAttempts(database: Database, failed: FailedAttempts): Promise<boolean> {
  const written = await database.run(sql`
    INSERT INTO ${attempts} (workflow_uuid, function_id, attempts, retry_at_epoch_ms, errors)
    SELECT r.workflow_uuid, r.function_id, r.attempts, r.retry_at_epoch_ms, r.errors
    FROM ${rows('r', attemptColumns.columns, [attemptColumns.toValues(failed)])}
    WHERE ${isOwned}
    ON CONFLICT (workflow_uuid, function_id) DO UPDATE
    SET attempts = EXCLUDED.attempts, retry_at_epoch_ms = EXCLUDED.retry_at_epoch_ms, errors = EXCLUDED.errors
    RETURNING function_id`);
  return written.length > 0;
}

export type PastAttempts = Pick<FailedAttempts, 'attempts' | 'retryAt' | 'errors'>;

/** The failed attempts of a workflow's steps, by number. */
export async function findFailedAttempts(database: Reader, workflowID: string): Promise<Map<number, PastAttempts>> {
  const found = await database.read(sql`
    SELECT a.function_id, a.attempts, a.retry_at_epoch_ms, a.errors
    FROM ${attempts} AS a
    WHERE a.workflow_uuid = ${workflowID}`);
  return new Map(
    found.map((row) => [
      row['function_id'] as number,
      {
        attempts: Number(row['attempts']),
        retryAt: Number(row['retry_at_epoch_ms']),
        errors: row['errors'] as string,
      },
    ]),
  );
}
