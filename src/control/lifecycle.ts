// Stopping workflows and letting them go on.
import { cancelWorkflows as cancel, resumeWorkflows as resume } from '../store/lifecycle.js';
import type { Operator } from './operator.js';

export interface CancelOptions {
  /** Cancels the workflows that they have started as well, and so on. */
  readonly cancelChildren?: boolean;
}

export interface ResumeOptions {
  /** Where they are to wait; the internal queue unless given. */
  readonly queueName?: string;
}

/** Cancels workflows that have not ended. Those that are not there, or have ended, are left alone. */
export async function cancelWorkflows(
  operator: Operator,
  workflowIDs: readonly string[],
  { cancelChildren }: CancelOptions = {},
): Promise<void> {
  const cancelled = await operator.retrying(() => cancel(operator.database, workflowIDs, { children: cancelChildren }));
  await operator.news.changed(cancelled);
}

/** Lets workflows go on from their last checkpoint. All must exist, or none is resumed. */
export async function resumeWorkflows(
  operator: Operator,
  workflowIDs: readonly string[],
  { queueName }: ResumeOptions = {},
): Promise<void> {
  const resumed = await operator.retrying(() => resume(operator.database, workflowIDs, queueName));
  await operator.news.changed(resumed.map(({ workflowID }) => workflowID));
  operator.news.queued(resumed);
}
