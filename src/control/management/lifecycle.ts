// Cancels, resumes and deletes workflows. Each verb returns what its guarded statement changed.
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
 * Cancels active workflows and returns their IDs. Skips missing workflows and those that have ended.
 *
 * If the reply to an attempt was lost, the workflows it cancelled are not in the list: the retry cannot distinguish them
 * from workflows cancelled by someone else.
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
 * Resumes workflows from their last checkpoint, and returns the IDs of those resumed: all but those that have ended with a
 * result or an error. A running one is taken from its process and enqueued. All must exist, or none is resumed.
 *
 * The list is complete even if the reply to an attempt was lost: the retry resumes the same workflows again.
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

/** Internal options of a deletion. */
export interface DeleteCall extends DeleteOptions {
  /** Deletes the workflows' checkpoints in data sources. */
  readonly deleteCheckpoints?: (workflowIDs: readonly string[]) => Promise<void>;
}

/**
 * Deletes workflows in any status with all their data, and returns their IDs. Skips missing workflows.
 *
 * If the reply to an attempt was lost, the workflows it deleted are not in the list, because the retry does not find them.
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
