// Workflows that are put into queues: what callers may say of them, and the rows that follow.
import { newID } from '../../base/ids.js';
import type { WorkflowSerializationFormat } from '../../codec/serializer.js';
import { DBOSError } from '../../model/errors/errors.js';
import { checkPriority } from '../../model/queues.js';
import type { NewWorkflow } from '../../store/runs/workflows.js';
import type { Operator } from '../operator.js';
import { checkName } from '../runs/storable.js';

export type WorkflowIDReusePolicy = 'return-existing' | 'reject';
export type DuplicationPolicy = 'reject' | 'return-existing';

/** A workflow that is enqueued by the name of its function. */
export interface EnqueueWorkflowOptions {
  readonly queueName: string;
  readonly workflowName: string;
  readonly workflowClassName?: string;
  readonly workflowConfigName?: string;
  readonly workflowID?: string;
  readonly workflowIDReusePolicy?: WorkflowIDReusePolicy;
  readonly appVersion?: string;
  readonly workflowTimeoutMS?: number;
  readonly deduplicationID?: string;
  readonly serializationType?: WorkflowSerializationFormat;
  readonly priority?: number;
  readonly queuePartitionKey?: string;
  readonly delaySeconds?: number;
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
  readonly delaySeconds?: number;
  readonly applicationName?: string;
}

/** How a workflow is started, whoever starts it. */
export interface StartWorkflowParams {
  readonly workflowID?: string;
  readonly queueName?: string;
  /** null detaches from the deadline of the calling workflow. */
  readonly timeoutMS?: number | null;
  readonly enqueueOptions?: EnqueueOptions;
  readonly authenticatedUser?: string;
  readonly authenticatedRoles?: string[];
  readonly duplicationPolicy?: DuplicationPolicy;
  readonly workflowIDReusePolicy?: WorkflowIDReusePolicy;
  readonly workflowAttributes?: Record<string, unknown>;
}

/** What a workflow is called with. */
export interface Arguments {
  readonly args: readonly unknown[];
  readonly namedArgs?: Record<string, unknown>;
}

/** The row of a workflow that an operator enqueues without an engine. */
export async function toEnqueued(
  { codec, applicationName }: Operator,
  options: EnqueueWorkflowOptions,
  { args, namedArgs }: Arguments,
): Promise<NewWorkflow> {
  checkNames(options);
  checkStorableNames(options);
  checkWorkflowID(options.workflowID);
  checkTimeout(options.workflowTimeoutMS);
  checkEnqueueOptions(options, true);
  const inputs = await codec.encodeInputs(args, options.serializationType, namedArgs);
  const delayMs = delayOf(options);
  return enqueuedWorkflow({
    workflowID: options.workflowID ?? newID(),
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
    timeoutMs: options.workflowTimeoutMS == null ? null : Math.ceil(options.workflowTimeoutMS),
    queueName: options.queueName,
    queuePartitionKey: options.queuePartitionKey ?? null,
    deduplicationID: options.deduplicationID ?? null,
    priority: options.priority ?? 0,
    attributes: options.attributes === undefined ? null : encodeAttributes(options.attributes),
    delayMs,
  });
}

export function checkNames(options: EnqueueWorkflowOptions): void {
  for (const field of ['queueName', 'workflowName'] as const) {
    if (typeof options[field] !== 'string' || options[field].trim() === '') {
      throw new DBOSError(`A workflow that is enqueued by name needs a ${field}.`);
    }
  }
}

/** A name that the database refuses would end the transaction of a caller, and only with its own words. */
function checkStorableNames(options: EnqueueWorkflowOptions): void {
  const { workflowID, workflowName, workflowClassName, workflowConfigName, queueName } = options;
  const { deduplicationID, queuePartitionKey, appVersion, applicationName } = options;
  const names = { workflowID, workflowName, workflowClassName, workflowConfigName, queueName };
  const rest = { deduplicationID, queuePartitionKey, appVersion, applicationName };
  for (const [field, name] of Object.entries({ ...names, ...rest })) checkName(field, name ?? undefined);
}

export function checkWorkflowID(workflowID: string | undefined): void {
  if (workflowID != null && workflowID.trim() === '') {
    throw new DBOSError('A workflow ID must not be empty. Leave it out to get a fresh one.');
  }
}

export function checkTimeout(timeoutMs: number | null | undefined): void {
  if (timeoutMs != null && !(Number.isFinite(timeoutMs) && timeoutMs >= 0)) {
    throw new DBOSError(`timeoutMS must be a finite number and not negative, but is ${timeoutMs}.`);
  }
}

/** Refuses values that make no sense, and options of a queue where there is none. */
export function checkEnqueueOptions(options: EnqueueOptions, isQueued: boolean): void {
  const { deduplicationID, priority, queuePartitionKey, delaySeconds, applicationName } = options;
  const set = Object.entries({ deduplicationID, priority, queuePartitionKey, delaySeconds, applicationName }).filter(
    ([, value]) => value !== undefined,
  );
  if (set.length > 0 && !isQueued) {
    throw new DBOSError(
      `Enqueue option(s) ${set.map(([name]) => name).join(', ')} set on a workflow that is not being enqueued. Give a queueName.`,
    );
  }
  if (priority !== undefined) checkPriority(priority);
  if (delaySeconds !== undefined && !(Number.isFinite(delaySeconds) && delaySeconds >= 0)) {
    throw new DBOSError(`delaySeconds must be a finite number and not negative, but is ${delaySeconds}.`);
  }
}

/** In whole milliseconds; null for none. */
export function delayOf({ delaySeconds = 0 }: Pick<EnqueueOptions, 'delaySeconds'>): number | null {
  return delaySeconds > 0 ? Math.ceil(delaySeconds * 1000) : null;
}

export function encodeAttributes(attributes: Record<string, unknown>): string {
  const isPlain = typeof attributes === 'object' && attributes !== null && !Array.isArray(attributes);
  try {
    const text = isPlain ? JSON.stringify(attributes) : undefined;
    if (text !== undefined) return text;
  } catch (cause) {
    throw new DBOSError('Invalid workflow attributes: they must be a plain object of JSON values.', 1, { cause });
  }
  throw new DBOSError('Invalid workflow attributes: they must be a plain object of JSON values.');
}

type Given = 'workflowID' | 'name' | 'inputs' | 'serialization' | 'queueName';

/** What is not given is as it is for a workflow that nobody said more of. */
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
    // In the order of the calls: workflows of one millisecond are taken from their queue in it.
    creator: newID(),
    delayMs: null,
    ...fields,
  };
}
