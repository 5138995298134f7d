// A request to start or enqueue a workflow, and the row made from it.
import { inMs } from '../kernel/base/duration.js';
import { newID } from '../kernel/base/ids.js';
import type { WorkflowSerializationFormat } from '../kernel/codec/serializer.js';
import {
  checkCaller,
  checkEnqueueOptions,
  checkTimeout,
  checkWorkflowID,
  delayOf,
  encodeAttributes,
  givenID,
  type StartWorkflowParams,
} from '../features/queue/enqueue.js';
import { DBOSInvalidWorkflowTransitionError } from '../kernel/errors/errors.js';
import { filledName } from '../kernel/check/validation.js';
import type { NewWorkflow } from './rows/workflows.js';
import { startFact } from '../features/history/run-journal.run.js';
import type { Context } from './ambient.js';
import type { Runtime } from './runtime.js';
import type { WorkflowRegistration } from './registration/registry.js';
import type { Run } from './run.js';

export type { StartWorkflowParams };

/** The function that a workflow runs. Without a registration only its name is known, so it can only be enqueued. */
export interface Callee {
  readonly registration?: WorkflowRegistration;
  readonly name: string;
  readonly className: string | null;
  readonly configName: string | null;
  readonly format?: WorkflowSerializationFormat;
}

export interface StartRequest {
  readonly callee: Callee;
  /** The instance for an instance method. */
  readonly target?: unknown;
  readonly args: unknown[];
  readonly namedArgs?: Record<string, unknown>;
  readonly params: StartWorkflowParams;
  /** For a debounced workflow: how long calls may postpone it; null for no limit. */
  readonly debounce?: { readonly timeoutMs: number | null };
}

/** The parent's operation that starts the child. Its number must be reserved before the first await. */
export interface Parent {
  readonly run: Run;
  readonly stepID: number;
}

export interface NewWorkflowParts {
  readonly request: StartRequest;
  readonly context: Context | undefined;
  readonly parent: Parent | undefined;
  readonly workflowID: string;
  readonly assumedRole: string;
  readonly inputs: { readonly text: string; readonly serialization: string };
}

export function newWorkflow(runtime: Runtime, parts: NewWorkflowParts): NewWorkflow {
  const { request, context, parent, inputs } = parts;
  const { callee, params, debounce } = request;
  const queueName = params.queueName ?? context?.queueName ?? null;
  const options = params.enqueueOptions ?? {};
  const isQueued = queueName !== null;
  const owner = isQueued ? null : runtime.newOwner();
  const timeoutMs = timeoutOf(params, context);
  const delayMs = delayOf(options);
  const workflow: NewWorkflow = {
    workflowID: parts.workflowID,
    status: isQueued ? (delayMs === null ? 'ENQUEUED' : 'DELAYED') : 'PENDING',
    name: callee.name,
    className: callee.className,
    configName: callee.configName,
    inputs: inputs.text,
    serialization: inputs.serialization,
    authenticatedUser: params.authenticatedUser ?? context?.authenticatedUser ?? '',
    assumedRole: parts.assumedRole,
    authenticatedRoles: JSON.stringify(params.authenticatedRoles ?? context?.authenticatedRoles ?? []),
    // As in DBOS: who has enqueued it, or no one if the function is known by name only.
    executorID: isQueued && !callee.registration ? '' : runtime.config.executorID,
    applicationVersion: options.applicationVersion ?? ownVersion(runtime, parts),
    applicationID: runtime.config.applicationID,
    applicationName: options.applicationName ?? runtime.config.name,
    timeoutMs: timeoutMs == null ? null : Math.ceil(timeoutMs),
    // Without a timeout of its own a child inherits the parent's deadline. A timeout of null detaches it.
    deadlineAt: timeoutMs === undefined ? (parent?.run.deadlineAt ?? null) : null,
    queueName,
    queuePartitionKey: options.queuePartitionKey ?? null,
    deduplicationID: options.deduplicationID ?? null,
    priority: options.priority ?? 0,
    debounceMs: debounce?.timeoutMs ?? null,
    isDebounced: debounce !== undefined,
    recoveryAttempts: isQueued ? 0 : 1,
    parentWorkflowID: parent?.run.workflowID ?? null,
    parentOwner: parent?.run.owner ?? null,
    scheduleName: null,
    attributes: params.workflowAttributes === undefined ? null : encodeAttributes(params.workflowAttributes),
    owner,
    // Ordered by call: breaks ties between workflows enqueued in the same millisecond.
    creator: owner ?? newID(),
    delayMs,
  };
  const level = callee.registration?.config.history ?? runtime.config.history;
  return level === 'full' ? { ...workflow, fact: startFact(workflow) } : workflow;
}

/** Null sends it to the latest version: a function known by name only may be of any, and other applications have their own. */
function ownVersion(runtime: Runtime, { request: { callee, params } }: NewWorkflowParts): string | null {
  const { applicationName = runtime.config.name } = params.enqueueOptions ?? {};
  return callee.registration && applicationName === runtime.config.name ? runtime.applicationVersion : null;
}

/** Undefined: inherit the parent's deadline; null: no deadline. */
function timeoutOf(params: StartWorkflowParams, context: Context | undefined): number | null | undefined {
  return params.timeoutMS !== undefined ? inMs(params.timeoutMS) : context?.timeoutMs;
}

/** Throws if the parameters are invalid or contradict each other. */
export function checkParams(params: StartWorkflowParams, context: Context | undefined): void {
  const { queueName = context?.queueName, enqueueOptions = {}, duplicationPolicy } = params;
  const workflowID = givenID(params.workflowID) ?? context?.nextWorkflowID?.workflowID;
  checkWorkflowID(workflowID);
  if (queueName !== undefined) filledName.read(queueName, 'queueName');
  checkEnqueueOptions(enqueueOptions, queueName !== undefined);
  const { authenticatedUser = context?.authenticatedUser, authenticatedRoles = context?.authenticatedRoles } = params;
  checkCaller({ authenticatedUser, authenticatedRoles });
  if (
    duplicationPolicy === 'return-existing' &&
    (params.queueName === undefined || enqueueOptions.deduplicationID === undefined)
  ) {
    throw new DBOSInvalidWorkflowTransitionError(
      "duplicationPolicy 'return-existing' needs a queueName and enqueueOptions.deduplicationID.",
    );
  }
  checkTimeout(timeoutOf(params, context));
}
