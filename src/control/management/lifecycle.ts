// Cancelling, resuming and deleting workflows. Each verb returns what its guarded statement changed.
import { deleteWorkflows as remove } from '../../store/management/deletion.js';
import { cancelWorkflows as cancel, resumeWorkflows as resume } from '../../store/runs/lifecycle.js';
import { topics } from '../../store/notify/topics.js';
import { announceChanged } from '../notify/announcements.js';
import type { Operator } from '../operator.js';
import { type QueueTargetOptions, resolveQueueTarget } from '../queues/queue-target.js';

export interface CancelOptions {
  /** Also cancels their descendants. */
  readonly cancelChildren?: boolean;
}

/** Without a partition key each workflow keeps its own. */
export type ResumeOptions = QueueTargetOptions;

export interface DeleteOptions {
  /** Also deletes their descendants. */
  readonly deleteChildren?: boolean;
}

/**
 * Cancels workflows that have not ended, and returns their IDs. Missing ones and those that have ended are left alone.
 *
 * If the answer to an attempt was lost, the workflows that it cancelled are not in the list: the next attempt cannot tell
 * them from workflows that someone else cancelled.
 */
export async function cancelWorkflows(
  operator: Operator,
  workflowIDs: readonly string[],
  { cancelChildren }: CancelOptions = {},
): Promise<string[]> {
  const cancelled = await operator.retrying(() => cancel(operator.database, workflowIDs, { children: cancelChildren }));
  await announceChanged(operator.bus, cancelled);
  return cancelled;
}

/**
 * Lets workflows continue from their last checkpoint, and returns the IDs of those that do: all but those that have ended
 * with a result or an error. A running one is taken from its process and enqueued. All must exist, or none is resumed.
 *
 * The list is complete even if the answer to an attempt was lost: the next attempt resumes the same workflows again.
 */
export async function resumeWorkflows(
  operator: Operator,
  workflowIDs: readonly string[],
  options: ResumeOptions = {},
): Promise<string[]> {
  const target = await resolveQueueTarget(operator, options);
  const resumed = await operator.retrying(() => resume(operator.database, workflowIDs, target));
  const resumedIDs = resumed.map(({ workflowID }) => workflowID);
  await announceChanged(operator.bus, resumedIDs);
  operator.bus.publishAll(topics.work, resumed);
  return resumedIDs;
}

/** What callers inside the package add to a deletion. */
export interface DeleteCall extends DeleteOptions {
  /** Deletes the checkpoints that data sources keep of the workflows. */
  readonly deleteCheckpoints?: (workflowIDs: readonly string[]) => Promise<void>;
}

/**
 * Deletes workflows in any state with everything that belongs to them, and returns their IDs. Missing ones are left out.
 *
 * If the answer to an attempt was lost, the workflows that it deleted are not in the list: the next attempt does not find
 * them.
 */
export async function deleteWorkflows(
  operator: Operator,
  workflowIDs: readonly string[],
  { deleteChildren, deleteCheckpoints }: DeleteCall = {},
): Promise<string[]> {
  const deleted = await operator.retrying(() => remove(operator.database, workflowIDs, { children: deleteChildren }));
  const deletedIDs = deleted.map(({ workflowID }) => workflowID);
  await deleteCheckpoints?.(deletedIDs);
  await announceChanged(operator.bus, deletedIDs);
  // Their slots are free, including those of processes that cannot notify.
  operator.bus.publishAll(
    topics.work,
    deleted.filter(({ wasRunning, queueName }) => wasRunning && queueName !== null),
  );
  return deletedIDs;
}
