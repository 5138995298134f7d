// Moving workflows that wait: later, earlier, before others.
import { DBOSInvalidArgumentError } from '../../model/errors/errors.js';
import { checkPriority } from '../../model/queues.js';
import { positiveNumber } from '../../model/validation/validation.js';
import { type Delay, delayIfWaiting, setPriorityIfActive } from '../../store/queues/delays.js';
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
  operator.news.delayed();
}

function toDelay(options: number | SetWorkflowDelayOptions): Delay {
  const { delaySeconds, delayUntilEpochMS } = typeof options === 'number' ? { delaySeconds: options } : options;
  if ((delaySeconds === undefined) === (delayUntilEpochMS === undefined)) {
    throw new DBOSInvalidArgumentError(
      'setWorkflowDelay needs exactly one of delaySeconds and delayUntilEpochMS.',
      'options',
    );
  }
  return delaySeconds === undefined
    ? { untilMs: Math.ceil(positiveNumber.read(delayUntilEpochMS, 'delayUntilEpochMS')) }
    : { delayMs: Math.ceil(positiveNumber.read(delaySeconds, 'delaySeconds') * 1000) };
}

/** Gives a workflow that has not ended another priority; lower numbers come first. */
export async function setWorkflowPriority(operator: Operator, workflowID: string, priority: number): Promise<void> {
  checkPriority(priority);
  const place = await operator.retrying(() => setPriorityIfActive(operator.database, workflowID, priority));
  // A claim that came in between has passed it over.
  if (place) operator.news.queued([place]);
}
