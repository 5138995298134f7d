// Enqueueing workflows: validates the options and builds the rows.
import { type DurationText, inMs, inSeconds } from '../../kernel/base/duration.js';
import { newID } from '../../kernel/base/ids.js';
import type { WorkflowSerializationFormat } from '../../kernel/codec/serializer.js';
import { DBOSInvalidArgumentError } from '../../kernel/errors/errors.js';
import { checkPriority } from './queue.js';
import {
  anything,
  array,
  type Check,
  filledName,
  isRecord,
  jsonObject,
  nullish,
  number,
  oneOf,
  optional,
  lenientRecord,
  refuseLoss,
  storableName,
  string,
} from '../../kernel/check/validation.js';
import type { NewWorkflow } from '../../run/rows/workflows.js';
import type { Operator } from '../../operator/operator.js';
import { refuseTooLong } from '../../operator/time-limit.js';

export type WorkflowIDReusePolicy = 'return-existing' | 'reject';
export type DuplicationPolicy = 'reject' | 'return-existing';

/** A workflow to enqueue by function name. */
export interface EnqueueWorkflowOptions {
  readonly queueName: string;
  readonly workflowName: string;
  readonly workflowClassName?: string;
  readonly workflowConfigName?: string;
  readonly workflowID?: string;
  readonly workflowIDReusePolicy?: WorkflowIDReusePolicy;
  readonly appVersion?: string;
  readonly workflowTimeoutMS?: number | DurationText;
  readonly deduplicationID?: string;
  readonly serializationType?: WorkflowSerializationFormat;
  readonly priority?: number;
  readonly queuePartitionKey?: string;
  readonly delaySeconds?: number | DurationText;
  readonly attributes?: Record<string, unknown>;
  readonly authenticatedUser?: string;
  readonly authenticatedRoles?: string[];
  readonly applicationName?: string;
  readonly duplicationPolicy?: DuplicationPolicy;
}

export interface EnqueueOptions {
  readonly deduplicationID?: string;
  readonly priority?: number;
  readonly queuePartitionKey?: string;
  readonly applicationVersion?: string;
  readonly delaySeconds?: number | DurationText;
  readonly applicationName?: string;
}

/** Start options shared by engine and client. */
export interface StartWorkflowParams {
  readonly workflowID?: string;
  readonly queueName?: string;
  /** Null detaches from the deadline of the calling workflow. */
  readonly timeoutMS?: number | DurationText | null;
  readonly enqueueOptions?: EnqueueOptions;
  readonly authenticatedUser?: string;
  readonly authenticatedRoles?: string[];
  readonly duplicationPolicy?: DuplicationPolicy;
  readonly workflowIDReusePolicy?: WorkflowIDReusePolicy;
  readonly workflowAttributes?: Record<string, unknown>;
}

const QUEUE_OPTIONS = ['deduplicationID', 'priority', 'queuePartitionKey', 'delaySeconds', 'applicationName'] as const;
const anyOption = optional(anything);
/** The names of the options, and those values that are nowhere else checked. */
const byNameCheck = lenientRecord({
  queueName: anyOption,
  workflowName: anyOption,
  workflowClassName: anyOption,
  workflowConfigName: anyOption,
  workflowID: anyOption,
  workflowIDReusePolicy: nullish(oneOf(['return-existing', 'reject'])),
  appVersion: anyOption,
  workflowTimeoutMS: anyOption,
  deduplicationID: anyOption,
  serializationType: nullish(oneOf(['native', 'portable'])),
  priority: anyOption,
  queuePartitionKey: anyOption,
  delaySeconds: anyOption,
  attributes: anyOption,
  authenticatedUser: anyOption,
  authenticatedRoles: anyOption,
  applicationName: anyOption,
  duplicationPolicy: nullish(oneOf(['return-existing', 'reject'])),
} satisfies Record<keyof EnqueueWorkflowOptions, Check<unknown>>);
const optionalName = nullish(storableName);
const optionalID = nullish(filledName);
const optionalUser = nullish(string());
const optionalRoles = nullish(array(string()));
const optionalTimeout = nullish(number());
const delayCheck = optional(number());

/** The arguments of a workflow. */
export interface Arguments {
  readonly args: readonly unknown[];
  readonly namedArgs?: Record<string, unknown>;
}

/** Builds the row of a workflow enqueued without an engine. */
export async function toEnqueued(
  { codec, applicationName }: Operator,
  options: EnqueueWorkflowOptions,
  { args, namedArgs }: Arguments,
): Promise<NewWorkflow> {
  checkNames(options);
  checkWorkflowID(options.workflowID);
  checkCaller(options);
  checkTimeout(options.workflowTimeoutMS);
  checkEnqueueOptions(options, true);
  const inputs = await codec.encodeInputs(args, options.serializationType, namedArgs);
  const delayMs = delayOf(options);
  return enqueuedWorkflow({
    workflowID: givenID(options.workflowID) ?? newID(),
    status: delayMs === null ? 'ENQUEUED' : 'DELAYED',
    name: options.workflowName,
    className: options.workflowClassName || null,
    configName: options.workflowConfigName || null,
    inputs: inputs.text,
    serialization: inputs.serialization,
    authenticatedUser: options.authenticatedUser ?? '',
    authenticatedRoles: JSON.stringify(options.authenticatedRoles ?? []),
    applicationVersion: options.appVersion ?? null,
    applicationName: options.applicationName ?? applicationName,
    timeoutMs: options.workflowTimeoutMS == null ? null : Math.ceil(inMs(options.workflowTimeoutMS)),
    queueName: options.queueName,
    queuePartitionKey: options.queuePartitionKey ?? null,
    deduplicationID: options.deduplicationID ?? null,
    priority: options.priority ?? 0,
    attributes: options.attributes === undefined ? null : encodeAttributes(options.attributes),
    delayMs,
  });
}

/**
 * Names of a workflow that is enqueued by name. One that the database refuses would fail a commit that the call shares with
 * others, or end the transaction of the caller.
 */
export function checkNames(options: EnqueueWorkflowOptions): void {
  byNameCheck.read(options, 'options');
  filledName.read(options.queueName, 'options.queueName');
  filledName.read(options.workflowName, 'options.workflowName');
  optionalName.read(options.workflowClassName, 'options.workflowClassName');
  optionalName.read(options.workflowConfigName, 'options.workflowConfigName');
  optionalName.read(options.appVersion, 'options.appVersion');
}

/** The user and the roles that a workflow runs for. */
export function checkCaller(caller: {
  readonly authenticatedUser?: string;
  readonly authenticatedRoles?: readonly string[];
}): void {
  optionalUser.read(caller.authenticatedUser, 'authenticatedUser');
  optionalRoles.read(caller.authenticatedRoles, 'authenticatedRoles');
}

/** An empty ID is none, as in DBOS: callers pass on a header or a field that may be missing. */
export function givenID(workflowID: string | undefined): string | undefined {
  return workflowID === '' ? undefined : workflowID;
}

export function checkWorkflowID(workflowID: string | undefined): void {
  optionalID.read(givenID(workflowID), 'workflowID');
}

export function checkTimeout(timeout: number | DurationText | null | undefined): void {
  const timeoutMs = inMs(timeout);
  refuseTooLong(timeoutMs, 'timeoutMS');
  optionalTimeout.read(timeoutMs, 'timeoutMS');
}

/** Refuses invalid values, and queue options without a queue. */
export function checkEnqueueOptions(options: EnqueueOptions, isQueued: boolean): void {
  if (!isQueued) refuseQueueOptions(options);
  if (options.priority !== undefined) checkPriority(options.priority);
  optionalName.read(options.deduplicationID, 'deduplicationID');
  optionalName.read(options.queuePartitionKey, 'queuePartitionKey');
  optionalName.read(options.applicationVersion, 'applicationVersion');
  optionalName.read(options.applicationName, 'applicationName');
  const delaySeconds = inSeconds(options.delaySeconds);
  if (typeof delaySeconds === 'number') refuseTooLong(delaySeconds * 1000, 'delaySeconds');
  delayCheck.read(delaySeconds, 'delaySeconds');
}

function refuseQueueOptions(options: EnqueueOptions): void {
  const set = QUEUE_OPTIONS.filter((name) => options[name] !== undefined);
  if (set.length === 0) return;
  throw new DBOSInvalidArgumentError(
    `Enqueue option(s) ${set.join(', ')} set on a workflow that is not being enqueued. Set queueName.`,
    'enqueueOptions',
  );
}

/** Whole milliseconds; null for none. */
export function delayOf(options: Pick<EnqueueOptions, 'delaySeconds'>): number | null {
  const delaySeconds = inSeconds(options.delaySeconds) ?? 0;
  return delaySeconds > 0 ? Math.ceil(delaySeconds * 1000) : null;
}

export function encodeAttributes(attributes: Record<string, unknown>): string {
  if (isRecord(attributes)) refuseLoss(attributes, 'attributes');
  const text = textOf(attributes);
  jsonObject.read(JSON.parse(text), 'attributes');
  return text;
}

function textOf(attributes: Record<string, unknown>): string {
  let cause: unknown;
  try {
    const text = isRecord(attributes) ? JSON.stringify(attributes) : undefined;
    if (text !== undefined) return text;
  } catch (error) {
    cause = error;
  }
  const message = 'Invalid workflow attributes: they must be a plain object of JSON values.';
  throw new DBOSInvalidArgumentError(message, 'attributes', cause === undefined ? undefined : { cause });
}

type Given = 'workflowID' | 'name' | 'inputs' | 'serialization' | 'queueName';

/** Fills in the defaults of a new row. */
export function enqueuedWorkflow(fields: Pick<NewWorkflow, Given> & Partial<NewWorkflow>): NewWorkflow {
  return {
    status: 'ENQUEUED',
    className: null,
    configName: null,
    authenticatedUser: '',
    assumedRole: '',
    authenticatedRoles: '[]',
    executorID: '',
    applicationVersion: null,
    applicationID: '',
    applicationName: null,
    timeoutMs: null,
    deadlineAt: null,
    queuePartitionKey: null,
    deduplicationID: null,
    priority: 0,
    debounceMs: null,
    isDebounced: false,
    recoveryAttempts: 0,
    parentWorkflowID: null,
    parentOwner: null,
    scheduleName: null,
    attributes: null,
    owner: null,
    // In call order, which decides the claim order of workflows created in the same millisecond.
    creator: newID(),
    delayMs: null,
    ...fields,
  };
}
