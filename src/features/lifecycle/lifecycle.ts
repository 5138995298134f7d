// Cancels, resumes and deletes workflows. Each verb returns what its guarded statement changed.
import { deleteWorkflows as remove } from './deletion.sql.js';
import { cancelWorkflows as cancel, findTrees, resumeWorkflows as resume } from '../../run/rows/lifecycle.js';
import { topics } from '../../database/notify/topics.js';
import { announceChanged } from '../../operator/announcements.js';
import type { ChangeReason } from '../history/cancellations.js';
import type { Operator } from '../../operator/operator.js';
import { type QueueTargetOptions, resolveQueueTarget } from '../queue/queue-target.js';

export interface CancelOptions extends ChangeReason {
  /** Also cancels their descendants. */
  readonly cancelChildren?: boolean;
}

/** Without a partition key each workflow keeps its own. */
export interface ResumeOptions extends QueueTargetOptions, ChangeReason {}

/** The histories of the workflows go with them: who deleted them and why is written to the log. */
export interface DeleteOptions extends ChangeReason {
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
  { cancelChildren, reason, actor, isTimeout }: CancelOptions & { readonly isTimeout?: boolean } = {},
): Promise<string[]> {
  const { database, bus } = operator;
  const isExplained = reason !== undefined || actor !== undefined;
  const note = isTimeout
    ? ({ source: 'deadline' } as const)
    : isExplained && ({ source: 'api', reason, actor } as const);
  const { result, isRepeated } = await repeating(operator, () =>
    cancel(database, workflowIDs, { children: cancelChildren, note: note || undefined }),
  );
  const affected = isRepeated && cancelChildren ? await operator.retrying(() => findTrees(database, workflowIDs)) : [];
  await announceChanged(bus, isRepeated ? [...workflowIDs, ...affected] : result);
  return result;
}

/**
 * Retries, and says whether it had to. Then the result may lack what an earlier attempt has done. It has to be announced
 * all the same, or the runs concerned would notice late.
 */
async function repeating<T>(operator: Operator, operation: () => Promise<T>) {
  let attempts = 0;
  const result = await operator.retrying(() => {
    attempts += 1;
    return operation();
  });
  return { result, isRepeated: attempts > 1 };
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
  // A step that completed after the cancellation is kept only until the resume.
  await operator.written?.(workflowIDs);
  const note = { reason: options.reason, actor: options.actor };
  const resumed = await operator.retrying(() => resume(operator.database, workflowIDs, { ...target, note }));
  const resumedIDs = resumed.map(({ workflowID }) => workflowID);
  await announceChanged(operator.bus, resumedIDs);
  operator.bus.publishAll(topics.work, resumed);
  return resumedIDs;
}

/**
 * Deletes workflows in any status with all their data, and returns their IDs. Skips missing workflows.
 *
 * If the reply to an attempt was lost, the workflows it deleted are not in the list, because the retry does not find them.
 */
export async function deleteWorkflows(
  operator: Operator,
  workflowIDs: readonly string[],
  { deleteChildren, reason, actor }: DeleteOptions = {},
): Promise<string[]> {
  const { result: deleted, isRepeated } = await repeating(operator, () =>
    remove(operator.database, workflowIDs, { children: deleteChildren, note: { reason, actor } }),
  );
  const deletedIDs = deleted.map(({ workflowID }) => workflowID);
  if (deleted.length > 0 && (reason ?? actor) !== undefined) logDeletion(operator, deletedIDs, { reason, actor });
  await operator.dataSources?.forgetDeleted(deletedIDs);
  await announceChanged(operator.bus, isRepeated ? [...workflowIDs, ...deletedIDs] : deletedIDs);
  // Their slots are free, including those of processes that cannot notify.
  operator.bus.publishAll(
    topics.work,
    deleted.filter(({ wasRunning, queueName }) => wasRunning && queueName !== null),
  );
  return deletedIDs;
}

/** IDs that a line of the log names. */
const LOGGED_MAX = 20;

function logDeletion({ logger }: Operator, deletedIDs: readonly string[], { reason, actor }: ChangeReason): void {
  const named = deletedIDs.slice(0, LOGGED_MAX).map((id) => JSON.stringify(id));
  const others = deletedIDs.length > LOGGED_MAX ? ` and ${deletedIDs.length - LOGGED_MAX} others` : '';
  const who = actor === undefined ? '' : ` by ${JSON.stringify(actor)}`;
  const why = reason === undefined ? '' : `: ${JSON.stringify(reason)}`;
  logger.info(`Deleted ${named.join(', ')}${others}${who}${why}.`);
}
