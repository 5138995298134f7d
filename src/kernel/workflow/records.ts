// Rows of the store as plain data. Values are text in the format that `serialization` names; the codec decodes them.
import type { WorkflowStatusString } from './status.js';

/** A workflow's row. Times are epoch milliseconds. */
export interface WorkflowRecord {
  readonly workflowID: string;
  readonly status: WorkflowStatusString;
  readonly name: string;
  readonly className: string | null;
  readonly configName: string | null;
  readonly inputs: string | null;
  readonly output: string | null;
  readonly error: string | null;
  readonly serialization: string | null;
  readonly authenticatedUser: string | null;
  readonly assumedRole: string | null;
  /** A JSON array. */
  readonly authenticatedRoles: string | null;
  readonly request: string | null;
  readonly executorID: string | null;
  readonly applicationVersion: string | null;
  readonly applicationID: string | null;
  readonly applicationName: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly startedAt: number | null;
  readonly completedAt: number | null;
  readonly timeoutMs: number | null;
  readonly deadlineAt: number | null;
  readonly queueName: string | null;
  readonly queuePartitionKey: string | null;
  readonly deduplicationID: string | null;
  readonly priority: number;
  readonly delayUntil: number | null;
  readonly isRateLimited: boolean;
  readonly debounceDeadlineAt: number | null;
  readonly isDebounced: boolean;
  readonly recoveryAttempts: number;
  readonly parentWorkflowID: string | null;
  readonly forkedFrom: string | null;
  readonly wasForkedFrom: boolean;
  readonly scheduleName: string | null;
  /** A JSON object. */
  readonly attributes: string | null;
  /** The fencing token of the run that owns the workflow while it is PENDING. */
  readonly owner: string | null;
  /** The token of the call that created the row, so that the caller can recognise its own. */
  readonly creator: string | null;
}

/** A step's checkpoint. */
export interface StepRecord {
  readonly workflowID: string;
  readonly stepID: number;
  readonly name: string;
  readonly output: string | null;
  readonly error: string | null;
  readonly childWorkflowID: string | null;
  readonly startedAt: number | null;
  readonly completedAt: number | null;
  readonly serialization: string | null;
  readonly applicationName: string | null;
  /** Of an operation that ran beside others, to tell it from those of its name. */
  readonly argumentsHash?: number | null;
}
