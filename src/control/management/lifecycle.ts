// Stopping workflows, letting them go on, and removing them.
import { deleteWorkflows as remove } from '../../store/management/deletion.js';
import { cancelWorkflows as cancel, resumeWorkflows as resume } from '../../store/runs/lifecycle.js';
import { topics } from '../../store/notify/topics.js';
import { announceChanged } from '../notify/announcements.js';
import type { Operator } from '../operator.js';
import { type QueueTargetOptions, resolveQueueTarget } from '../queues/queue-target.js';

export interface CancelOptions {
  /** Cancels the workflows that they have started as well, and so on. */
  readonly cancelChildren?: boolean;
}

/** Without a partition key each workflow keeps its own. */
export type ResumeOptions = QueueTargetOptions;

export interface DeleteOptions {
  /** Deletes the workflows that they have started as well, and so on. */
  readonly deleteChildren?: boolean;
}

/** Cancels workflows that have not ended. Those that are not there, or have ended, are left alone. */
export async function cancelWorkflows(
  operator: Operator,
  workflowIDs: readonly string[],
  { cancelChildren }: CancelOptions = {},
): Promise<void> {
  const cancelled = await operator.retrying(() => cancel(operator.database, workflowIDs, { children: cancelChildren }));
  await announceChanged(operator.bus, cancelled);
}

/** Lets workflows go on from their last checkpoint. All must exist, or none is resumed. */
export async function resumeWorkflows(
  operator: Operator,
  workflowIDs: readonly string[],
  options: ResumeOptions = {},
): Promise<void> {
  const target = await resolveQueueTarget(operator, options);
  const resumed = await operator.retrying(() => resume(operator.database, workflowIDs, target));
  await announceChanged(
    operator.bus,
    resumed.map(({ workflowID }) => workflowID),
  );
  operator.bus.publishAll(topics.work, resumed);
}

/** Deletes workflows in whatever state they are, with all that belongs to them. Those that are not there are left out. */
/** A deletion as it is carried out, where data sources are at hand. */
export interface DeleteCall extends DeleteOptions {
  /** Lets data sources forget what they keep of the workflows. */
  readonly deleteCheckpoints?: (workflowIDs: readonly string[]) => Promise<void>;
}

export async function deleteWorkflows(
  operator: Operator,
  workflowIDs: readonly string[],
  { deleteChildren, deleteCheckpoints }: DeleteCall = {},
): Promise<void> {
  const deleted = await operator.retrying(() => remove(operator.database, workflowIDs, { children: deleteChildren }));
  const deletedIDs = deleted.map(({ workflowID }) => workflowID);
  await deleteCheckpoints?.(deletedIDs);
  await announceChanged(operator.bus, deletedIDs);
  // Their places are free, also those of processes that cannot tell.
  operator.bus.publishAll(
    topics.work,
    deleted.filter(({ wasRunning, queueName }) => wasRunning && queueName !== null),
  );
}
