// Changing when a waiting workflow is claimed: its delay and its priority.
import { DBOSError } from '../../model/errors/errors.js';
import { checkPriority } from '../../model/queues.js';
import { type Delay, delayIfWaiting, setPriorityIfActive } from '../../store/queues/delays.js';
import { topics } from '../../store/notify/topics.js';
import type { Operator } from '../operator.js';

/** Exactly one of both. */
export interface SetWorkflowDelayOptions {
  readonly delaySeconds?: number;
  readonly delayUntilEpochMS?: number;
}

/** Delays a workflow that waits in a queue or for its time. Any other is left as it is. */
export async function setWorkflowDelay(
  operator: Operator,
  workflowID: string,
  options: number | SetWorkflowDelayOptions,
): Promise<void> {
  const delay = toDelay(options);
  await operator.retrying(() => delayIfWaiting(operator.database, workflowID, delay));
  operator.bus.publish(topics.delays, '');
}

function toDelay(options: number | SetWorkflowDelayOptions): Delay {
  const { delaySeconds, delayUntilEpochMS } = typeof options === 'number' ? { delaySeconds: options } : options;
  if ((delaySeconds === undefined) === (delayUntilEpochMS === undefined)) {
    throw new DBOSError('setWorkflowDelay needs exactly one of delaySeconds and delayUntilEpochMS.');
  }
  for (const [name, value] of Object.entries({ delaySeconds, delayUntilEpochMS })) {
    if (value !== undefined && !(Number.isFinite(value) && value > 0)) {
      throw new DBOSError(`${name} must be a finite number greater than 0, but is ${value}.`);
    }
  }
  return delaySeconds === undefined
    ? { untilMs: Math.ceil(delayUntilEpochMS ?? 0) }
    : { delayMs: Math.ceil(delaySeconds * 1000) };
}

/** Gives a workflow that has not ended another priority; lower numbers come first. */
export async function setWorkflowPriority(operator: Operator, workflowID: string, priority: number): Promise<void> {
  checkPriority(priority);
  const place = await operator.retrying(() => setPriorityIfActive(operator.database, workflowID, priority));
  // A claim that came in between has passed it over.
  if (place) operator.bus.publish(topics.work, place);
}
