// Rows of workflows as users see them.
import type { WorkflowRecord } from '../../kernel/workflow/records.js';
import { type ExplainedRecord, withCancellations } from '../history/cancellations.js';
import type { Operator } from '../../operator/operator.js';
import { withWaits } from '../parking/waiting-for.js';

/** Says what parked workflows wait for, and why others were cancelled. */
export async function explainRecords(
  operator: Pick<Operator, 'database' | 'retrying'>,
  records: readonly WorkflowRecord[],
): Promise<ExplainedRecord[]> {
  return withCancellations(operator, await withWaits(operator, records));
}
