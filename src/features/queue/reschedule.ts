// Changes when a waiting workflow is claimed: its delay and its priority.
import { type DurationText, inSeconds, isDuration } from '../../kernel/base/duration.js';
import { refuseTooLong } from '../../operator/time-limit.js';
import { DBOSInvalidArgumentError } from '../../kernel/errors/errors.js';
import { checkPriority } from './queue.js';
import { checkThat, isRecord, positiveNumber } from '../../kernel/check/validation.js';
import { type Delay, delayIfWaiting, setPriorityIfActive } from './delays.sql.js';
import { topics } from '../../database/notify/topics.js';
import type { ChangeReason } from '../history/cancellations.js';
import type { Operator } from '../../operator/operator.js';

/** Set exactly one of the two times. */
export interface SetWorkflowDelayOptions extends ChangeReason {
  readonly delaySeconds?: number | DurationText;
  readonly delayUntilEpochMS?: number;
}

/** Delays a workflow that is enqueued or delayed. Returns false for any other, which does not change. */
export async function setWorkflowDelay(
  operator: Operator,
  workflowID: string,
  options: number | DurationText | SetWorkflowDelayOptions,
): Promise<boolean> {
  const delay = toDelay(options);
  // If the reply is lost, the retry sets the delay again, unless the workflow was claimed in between.
  const isDelayed = await operator.retrying(() => delayIfWaiting(operator.database, workflowID, delay));
  operator.bus.publish(topics.delays, '');
  return isDelayed;
}

const delayCheck = checkThat(
  'a number of seconds, a duration such as 30s, or an object',
  (value) => typeof value === 'number' || isDuration(value) || isRecord(value),
);

function toDelay(options: number | DurationText | SetWorkflowDelayOptions): Delay {
  delayCheck.read(options, 'options');
  const given: SetWorkflowDelayOptions = isRecord(options) ? options : { delaySeconds: options };
  const { delaySeconds, delayUntilEpochMS, reason, actor } = given;
  if ((delaySeconds === undefined) === (delayUntilEpochMS === undefined)) {
    throw new DBOSInvalidArgumentError(
      'setWorkflowDelay needs exactly one of delaySeconds and delayUntilEpochMS.',
      'options',
    );
  }
  const note = { reason, actor };
  return delaySeconds === undefined
    ? { untilMs: Math.ceil(positiveNumber.read(delayUntilEpochMS, 'delayUntilEpochMS')), note }
    : { delayMs: delayMsOf(delaySeconds), note };
}

/** Sets the priority of a workflow; lower numbers run first. False if it has ended or does not exist. */
export async function setWorkflowPriority(
  operator: Operator,
  workflowID: string,
  { priority, reason, actor }: ChangeReason & { readonly priority: number },
): Promise<boolean> {
  checkPriority(priority);
  const change = { workflowID, priority, note: { reason, actor } };
  const changed = await operator.retrying(() => setPriorityIfActive(operator.database, change));
  // A concurrent claim may have skipped the row while it was locked.
  if (changed?.ready) operator.bus.publish(topics.work, changed.ready);
  return changed !== undefined;
}

function delayMsOf(delaySeconds: number | DurationText): number {
  const delayMs = Math.ceil(positiveNumber.read(inSeconds(delaySeconds), 'delaySeconds') * 1000);
  refuseTooLong(delayMs, 'delaySeconds');
  return delayMs;
}
