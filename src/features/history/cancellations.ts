// Adds to cancelled workflows why and by whom they were cancelled.
import { findCancellations } from './cancellations.sql.js';
import type { Operator } from '../../operator/operator.js';
import type { WaitingRecord } from '../parking/waiting-for.js';

/** A reason for a change and who asks for it. Both are kept in the workflow's history. */
export interface ChangeReason {
  readonly reason?: string;
  /** A person or program, such as `ops@example.com`. */
  readonly actor?: string;
}

/** A workflow as users see it, with what it waits for if it is parked, and the reason if it was cancelled. */
export interface ExplainedRecord extends WaitingRecord {
  readonly cancelReason?: string;
  readonly cancelledBy?: string;
  readonly isTimedOut?: boolean;
}

/** Looks up the reasons of those that were cancelled. Costs nothing if none was. */
export async function withCancellations(
  operator: Pick<Operator, 'database' | 'retrying'>,
  records: readonly WaitingRecord[],
): Promise<ExplainedRecord[]> {
  const cancelled = records.filter(({ status }) => status === 'CANCELLED').map(({ workflowID }) => workflowID);
  if (cancelled.length === 0) return [...records];
  const found = await operator.retrying(() => findCancellations(operator.database, cancelled));
  return records.map((record) => {
    const cancellation = record.status === 'CANCELLED' ? found.get(record.workflowID) : undefined;
    if (!cancellation) return record;
    const { isTimeout, reason, actor } = cancellation;
    return {
      ...record,
      isTimedOut: isTimeout,
      ...(isTimeout ? { cancelReason: 'timeout' } : reason !== null && { cancelReason: reason }),
      ...(actor !== null && { cancelledBy: actor }),
    };
  });
}
