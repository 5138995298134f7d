// When the operations of a workflow began and ended, without their values: what a timeline draws.
import { sql, table } from '../../kernel/sql/sql.js';
import type { Database, Row } from '../../database/database.js';

export interface StepSpan {
  readonly step: number;
  readonly name: string;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly childWorkflowID: string | null;
  readonly hasFailed: boolean;
  /** The stored output of a sleep, which is the time at which it ends. */
  readonly due: string | null;
}

export interface SpanQuery {
  readonly workflowID: string;
  /** Only operations with higher numbers. */
  readonly after: number;
  readonly limit: number;
}

const steps = table('operation_outputs');

const selected = sql`
  o.function_id, o.function_name, o.started_at_epoch_ms, o.completed_at_epoch_ms, o.child_workflow_id,
  CASE WHEN o.error IS NULL THEN 0 ELSE 1 END AS has_failed,
  CASE WHEN o.function_name = 'DBOS.sleep' THEN o.output END AS due`;

/** By number, from the key's index. */
export async function listSpans(database: Database, { workflowID, after, limit }: SpanQuery): Promise<StepSpan[]> {
  const found = await database.read(sql`
    SELECT ${selected}
    FROM ${steps} AS o
    WHERE o.workflow_uuid = ${workflowID} AND o.function_id > ${after}
    ORDER BY o.function_id
    LIMIT ${limit}`);
  return found.map(toSpan);
}

/** Those with the highest numbers, the last first. */
export async function listLastSpans(database: Database, workflowID: string, limit: number): Promise<StepSpan[]> {
  const found = await database.read(sql`
    SELECT ${selected}
    FROM ${steps} AS o
    WHERE o.workflow_uuid = ${workflowID}
    ORDER BY o.function_id DESC
    LIMIT ${limit}`);
  return found.map(toSpan);
}

function toSpan(row: Row): StepSpan {
  return {
    step: row['function_id'] as number,
    name: row['function_name'] as string,
    startedAt: timeOf(row['started_at_epoch_ms']),
    endedAt: timeOf(row['completed_at_epoch_ms']),
    childWorkflowID: row['child_workflow_id'] as string | null,
    hasFailed: row['has_failed'] === 1,
    due: row['due'] as string | null,
  };
}

function timeOf(value: unknown): number | null {
  return value === null ? null : Number(value);
}
