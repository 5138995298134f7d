// Forks: copies of workflows that continue from one of their steps.
import { type DurationText, inMs } from '../../kernel/base/duration.js';
import { newID } from '../../kernel/base/ids.js';
import { DBOSInvalidArgumentError } from '../../kernel/errors/errors.js';
import {
  anything,
  array,
  checkThat,
  filledName,
  INT_MAX,
  integer,
  isRecord,
  nullish,
  optional,
  positiveNumber,
  lenientRecord,
} from '../../kernel/check/validation.js';
import { findStartSteps, type Fork, insertForks, type StartChoice } from './forks.sql.js';
import { topics } from '../../database/notify/topics.js';
import type { ChangeReason } from '../history/cancellations.js';
import { givenID } from '../queue/enqueue.js';
import type { Operator } from '../../operator/operator.js';
import { refuseTooLong } from '../../operator/time-limit.js';
import { type QueueTargetOptions, refuseMissingKey, resolveQueueTarget } from '../queue/queue-target.js';

/** Settings shared by all forks of a call. */
export interface ForkSettings extends QueueTargetOptions, ChangeReason {
  /** The version that runs them. Default: that of the original. */
  readonly applicationVersion?: string;
  readonly timeoutMS?: number | DurationText;
  /** Replaces child IDs in the copied steps. */
  readonly replacementChildren?: Readonly<Record<string, string>>;
}

export interface ForkOptions extends ForkSettings {
  readonly newWorkflowID?: string;
}

/** A workflow to fork. */
export interface ForkRequest {
  readonly workflowID: string;
  /** The first step that the fork runs; beyond the last one, all steps are copied. */
  readonly startStep: number;
  /** Default: a new ID. */
  readonly newWorkflowID?: string;
}

/** Set exactly one of the four fields that select the step. */
export interface ForkFromFailureOptions extends Omit<ForkSettings, 'replacementChildren'> {
  /** The last failed step, or the last step if none failed. */
  readonly fromLastFailure?: boolean;
  readonly fromLastStep?: boolean;
  readonly fromStep?: number;
  /** The last step of this name. */
  readonly fromStepName?: string;
}

/** Internal options. */
export interface ForkToken {
  /** Identifies the call: a retry with the same token creates no more forks. Missing IDs are derived from it. */
  readonly token?: string;
}

/** Step numbers are stored in 32 bits. */
const startStepCheck = integer({ max: INT_MAX });
const timeoutCheck = optional(positiveNumber);
const versionCheck = nullish(filledName);
const anyOption = optional(anything);
const settingsFields = lenientRecord({
  queueName: anyOption,
  queuePartitionKey: anyOption,
  applicationVersion: anyOption,
  timeoutMS: anyOption,
  replacementChildren: anyOption,
  reason: anyOption,
  actor: anyOption,
} satisfies Record<keyof ForkSettings, unknown>);
const requestsCheck = array(checkThat<ForkRequest>('an object', isRecord));

/**
 * Forks workflows in one commit: all of them, or none if one does not exist or an ID is in use. Returns the IDs of the
 * forks, in order.
 */
export async function forkWorkflows(
  operator: Operator,
  requests: readonly ForkRequest[],
  { token, ...settings }: ForkSettings & ForkToken = {},
): Promise<string[]> {
  requestsCheck.read(requests, 'requests');
  settingsFields.read(settings, 'options');
  versionCheck.read(settings.applicationVersion, 'applicationVersion');
  // Chosen before the first attempt: if the reply is lost, the retry must not fork twice.
  const creator = token ?? newID();
  const forks = requests.map((request, index) => {
    const workflowID = givenID(request.newWorkflowID) ?? (token === undefined ? newID() : `${token}-${index}`);
    return toFork(request, workflowID, creator);
  });
  refuseDoubles(forks);
  const timeoutMs = timeoutCheck.read(inMs(settings.timeoutMS), 'timeoutMS');
  refuseTooLong(timeoutMs, 'timeoutMS');
  if (forks.length === 0) return [];
  const target = await resolveQueueTarget(operator, settings);
  refuseMissingKey(target);
  const { queueName, partitionKey } = target;
  const shared = {
    queueName,
    partitionKey,
    applicationVersion: settings.applicationVersion ?? null,
    applicationName: operator.applicationName,
    timeoutMs: timeoutMs === undefined ? null : Math.ceil(timeoutMs),
    replacementChildren: new Map(Object.entries(settings.replacementChildren ?? {})),
    note: { reason: settings.reason, actor: settings.actor },
  };
  await operator.retrying(() => insertForks(operator.database, forks, shared));
  operator.bus.publish(topics.work, target);
  return forks.map(({ workflowID }) => workflowID);
}

function toFork({ workflowID: originalID, startStep }: ForkRequest, workflowID: string, creator: string): Fork {
  checkStartStep(startStep);
  filledName.read(originalID, 'workflowID');
  filledName.read(workflowID, 'newWorkflowID');
  return { originalID, workflowID, startStep, creator };
}

export function checkStartStep(startStep: number): void {
  startStepCheck.read(startStep, 'startStep');
}

function refuseDoubles(forks: readonly Fork[]): void {
  const seen = new Set<string>();
  for (const { workflowID } of forks) {
    if (seen.has(workflowID)) {
      throw new DBOSInvalidArgumentError(
        `Two forks cannot both have the workflow ID "${workflowID}".`,
        'newWorkflowID',
      );
    }
    seen.add(workflowID);
  }
}

/** The step from which to fork each workflow. */
async function chooseStartSteps(
  operator: Operator,
  workflowIDs: readonly string[],
  options: ForkFromFailureOptions,
): Promise<ForkRequest[]> {
  const choice = choiceOf(options);
  if (typeof choice === 'number') return workflowIDs.map((workflowID) => ({ workflowID, startStep: choice }));
  const steps = await operator.retrying(() => findStartSteps(operator.database, workflowIDs, choice));
  return workflowIDs.map((workflowID) => {
    const startStep = steps.get(workflowID);
    if (startStep === undefined && choice.kind === 'name') {
      throw new DBOSInvalidArgumentError(
        `Workflow "${workflowID}" has no step named "${choice.name}".`,
        'options.fromStepName',
      );
    }
    return { workflowID, startStep: startStep ?? 0 };
  });
}

function choiceOf({ fromLastFailure, fromLastStep, fromStep, fromStepName }: ForkFromFailureOptions) {
  const choices: (StartChoice | number)[] = [];
  if (fromLastFailure) choices.push({ kind: 'last-failure' });
  if (fromLastStep) choices.push({ kind: 'last-step' });
  if (fromStep !== undefined) choices.push(fromStep);
  if (fromStepName !== undefined) choices.push({ kind: 'name', name: fromStepName });
  const [choice] = choices;
  if (choice !== undefined && choices.length === 1) return choice;
  throw new DBOSInvalidArgumentError(
    'Set exactly one of fromLastFailure, fromLastStep, fromStep and fromStepName.',
    'options',
  );
}

/** Forks workflows from the step where each failed, or another step. Returns the IDs of the forks, in order. */
export async function forkFromFailure(
  operator: Operator,
  workflowIDs: readonly string[],
  call: ForkFromFailureOptions & ForkToken,
): Promise<string[]> {
  const { applicationVersion, queueName, queuePartitionKey, timeoutMS, token, reason, actor } = call;
  const requests = await chooseStartSteps(operator, workflowIDs, call);
  const target = { applicationVersion, queueName, queuePartitionKey, timeoutMS };
  return forkWorkflows(operator, requests, { ...target, token, reason, actor });
}
