// Starting workflows: from a call to a row that is durable, and to a run or a handle of the one that exists already.
import { newID } from '../base/ids.js';
import {
  DBOSConflictingWorkflowError,
  DBOSError,
  DBOSInvalidQueuePriorityError,
  DBOSInvalidWorkflowTransitionError,
  DBOSQueueDuplicatedError,
  DBOSWorkflowIDInUseError,
} from '../model/errors.js';
import type { WorkflowRecord } from '../model/records.js';
import type { NewWorkflow } from '../store/workflows.js';
import type { StartVerdict } from '../store/writer-verdicts.js';
import { type Context, currentContext, isWorkflowCode } from './ambient.js';
import { authorize } from './authorization.js';
import type { Engine } from './engine.js';
import type { Invocation } from './execute.js';
import type { Handle } from './handles.js';
import type { WorkflowRegistration } from './registry.js';
import { Run } from './run.js';
import { replayOutcome } from './step.js';

export interface EnqueueOptions {
  readonly deduplicationID?: string;
  readonly priority?: number;
  readonly queuePartitionKey?: string;
  readonly applicationVersion?: string;
  readonly delaySeconds?: number;
  readonly applicationName?: string;
}

export type WorkflowIDReusePolicy = 'return-existing' | 'reject';

export interface StartWorkflowParams {
  readonly workflowID?: string;
  readonly queueName?: string;
  /** null detaches from the deadline of the calling workflow. */
  readonly timeoutMS?: number | null;
  readonly enqueueOptions?: EnqueueOptions;
  readonly authenticatedUser?: string;
  readonly authenticatedRoles?: string[];
  readonly duplicationPolicy?: 'reject' | 'return-existing';
  readonly workflowIDReusePolicy?: WorkflowIDReusePolicy;
  readonly workflowAttributes?: Record<string, unknown>;
}

export interface StartRequest {
  readonly registration: WorkflowRegistration;
  /** The instance for an instance method. */
  readonly target: unknown;
  readonly configName: string | null;
  readonly args: unknown[];
  readonly params: StartWorkflowParams;
}

/** A parent's place for the child: the number must have been reserved before the first await. */
interface Parent {
  readonly run: Run;
  readonly stepID: number;
}

const PRIORITY_MAX = 2_147_483_647;

/** Starts or enqueues a workflow and resolves when its row is durable. */
export function startWorkflow<R>(engine: Engine, request: StartRequest): Promise<Handle<R>> {
  const context = currentContext();
  refuseInStep(context, request.registration.name);
  const run = isWorkflowCode(context) ? context.run : undefined;
  return start(engine, request, context, run && { run, stepID: run.nextStepID() });
}

/** A direct call: starts the workflow and awaits its result. As a child it takes two numbers. */
export async function callWorkflow(engine: Engine, request: StartRequest): Promise<unknown> {
  const context = currentContext();
  refuseInStep(context, request.registration.name);
  if (!isWorkflowCode(context)) return (await start(engine, request, context, undefined)).getResult();
  const { run } = context;
  const stepID = run.nextStepID();
  const resultID = run.nextStepID();
  const child = await start(engine, request, context, { run, stepID });
  return child.resultAs(run, resultID);
}

export function refuseInStep(context: Context | undefined, name: string): void {
  if (context?.step === undefined && context?.transactionID === undefined) return;
  throw new DBOSInvalidWorkflowTransitionError(
    `Workflow "${name}" cannot be started from within a step or transaction. Start it from workflow code instead.`,
  );
}

async function start<R>(
  engine: Engine,
  request: StartRequest,
  context: Context | undefined,
  parent: Parent | undefined,
): Promise<Handle<R>> {
  checkParams(request.params, context);
  // Before the first await: the next workflow that is started must not get the same assigned ID.
  const assignedID = takeAssignedID(request.params, context);
  const workflowID = assignedID ?? (parent ? `${parent.run.workflowID}-${parent.stepID}` : newID());
  const recorded = parent?.run.replay(parent.stepID, request.registration.name);
  parent?.run.check();
  if (parent && recorded) {
    if (recorded.error !== null) await replayOutcome(parent.run, recorded);
    return engine.handleOf(recorded.childWorkflowID ?? workflowID);
  }
  const assumedRole = authorize(engine, request.registration, context, request.params);
  const inputs = await engine.codec.roundTripInputs(request.args, {
    format: request.registration.config.serialization ?? context?.serialization,
    path: [request.registration.name, '<arguments>'],
  });
  await engine.store.writer.room();
  // Only then is the parent's deadline known, which the child may inherit.
  if (parent) await parent.run.barrier();
  const workflow = newWorkflow(engine, { request, context, parent, workflowID, assumedRole, inputs });
  const begun = { engine, request, context, workflow, args: inputs.args };
  if (parent) return startChild(begun, parent);
  // Nobody else can have a fresh random ID, so its run need not wait for the verdict to begin.
  if (assignedID === undefined && workflow.status === 'PENDING') return startFresh(begun);
  return attach(begun, await engine.store.writer.start(workflow));
}

interface Begun {
  readonly engine: Engine;
  readonly request: StartRequest;
  readonly context: Context | undefined;
  readonly workflow: NewWorkflow;
  readonly args: unknown[];
}

async function startFresh<R>(begun: Begun): Promise<Handle<R>> {
  const { engine, workflow } = begun;
  const run = newRun(begun, null);
  const created = engine.store.writer.start(workflow).then((verdict) => {
    if (verdict.kind !== 'created') throw new DBOSWorkflowIDInUseError(workflow.workflowID, 'PENDING', workflow.name);
    run.deadlineAt = verdict.deadlineAt;
    engine.deadlines.watch(run, workflow.timeoutMs ?? remaining(engine, verdict.deadlineAt));
  });
  run.holdBack(created);
  const handle = engine.launchRun<R>(invocationOf(begun, run));
  await created;
  return handle;
}

async function startChild<R>(begun: Begun, parent: Parent): Promise<Handle<R>> {
  const { engine, workflow } = begun;
  const { run, stepID } = parent;
  const now = engine.clock.now();
  const step = {
    stepID,
    name: workflow.name,
    output: null,
    error: null,
    childWorkflowID: workflow.workflowID,
    startedAt: now,
    completedAt: now,
    serialization: null,
  };
  const verdict = await run.recordChild({
    start: workflow,
    checkpoint: {
      owner: run.owner,
      child: workflow,
      step: { ...step, workflowID: run.workflowID, applicationName: engine.config.name },
    },
  });
  // What was not created leaves nothing but the parent's record: of the workflow that is there, or of the refusal.
  const isRecorded = verdict.kind === 'created';
  try {
    const handle = await attach<R>(begun, verdict);
    if (!isRecorded) run.record({ ...step, childWorkflowID: handle.workflowID });
    return handle;
  } catch (error) {
    if (!isRecorded) {
      const { text, serialization } = await engine.codec.encodeError(error);
      run.record({ ...step, childWorkflowID: null, error: text, serialization });
    }
    throw error;
  }
}

/** Runs what was created; gives a handle of what exists. */
async function attach<R>(begun: Begun, verdict: StartVerdict): Promise<Handle<R>> {
  const { engine, request, workflow } = begun;
  switch (verdict.kind) {
    case 'created': {
      if (workflow.status !== 'PENDING') {
        engine.announceQueued(workflow);
        return engine.handleOf(workflow.workflowID);
      }
      const run = newRun(begun, verdict.deadlineAt);
      engine.deadlines.watch(run, workflow.timeoutMs ?? remaining(engine, verdict.deadlineAt));
      return engine.launchRun<R>(invocationOf(begun, run));
    }
    case 'exists':
      refuseConflict(begun, verdict.workflow);
      return engine.handleOf(workflow.workflowID);
    case 'duplicated':
      if (request.params.duplicationPolicy === 'return-existing') return engine.handleOf(verdict.holderID);
      throw new DBOSQueueDuplicatedError(workflow.workflowID, workflow.queueName ?? '', workflow.deduplicationID ?? '');
    case 'orphaned':
      throw new DBOSInvalidWorkflowTransitionError(`Workflow "${workflow.parentWorkflowID}" was stopped.`);
  }
}

function refuseConflict({ engine, request, workflow }: Begun, existing: WorkflowRecord): void {
  const differs =
    existing.name !== workflow.name
      ? `it runs "${existing.name}", not "${workflow.name}"`
      : (existing.className ?? '') !== (workflow.className ?? '')
        ? `it belongs to class "${existing.className ?? ''}", not "${workflow.className ?? ''}"`
        : (existing.configName ?? '') !== (workflow.configName ?? '')
          ? `it belongs to instance "${existing.configName ?? ''}", not "${workflow.configName ?? ''}"`
          : undefined;
  if (differs !== undefined) throw new DBOSConflictingWorkflowError(workflow.workflowID, differs);
  if (request.params.workflowIDReusePolicy === 'reject') {
    throw new DBOSWorkflowIDInUseError(workflow.workflowID, existing.status, existing.name);
  }
  if (workflow.queueName !== null && existing.queueName !== null && existing.queueName !== workflow.queueName) {
    engine.logger.warn(
      `Workflow "${workflow.workflowID}" is in queue "${existing.queueName}", not in "${workflow.queueName}".`,
    );
  }
}

function newRun({ engine, request, workflow }: Begun, deadlineAt: number | null): Run {
  return new Run({
    engine,
    registration: request.registration,
    workflowID: workflow.workflowID,
    owner: workflow.owner ?? '',
    deadlineAt,
    isPortable: workflow.serialization === 'portable_json',
    queueName: workflow.queueName,
  });
}

function invocationOf(begun: Begun, run: Run): Invocation {
  return { run, target: begun.request.target, args: begun.args, context: runContext(begun, run) };
}

/** What the workflow's code sees around it: the caller's settings, but neither its run nor its step. */
function runContext({ engine, context, workflow }: Begun, run: Run): Context {
  return {
    ...context,
    engine,
    run,
    step: undefined,
    transactionID: undefined,
    nextWorkflowID: undefined,
    timeoutMs: undefined,
    authenticatedUser: workflow.authenticatedUser ?? '',
    authenticatedRoles: JSON.parse(workflow.authenticatedRoles ?? '[]') as string[],
    assumedRole: workflow.assumedRole ?? '',
  };
}

function takeAssignedID(params: StartWorkflowParams, context: Context | undefined): string | undefined {
  const next = context?.nextWorkflowID;
  const ambientID = next?.workflowID;
  if (next) next.workflowID = undefined;
  return params.workflowID ?? ambientID;
}

interface NewWorkflowParts {
  readonly request: StartRequest;
  readonly context: Context | undefined;
  readonly parent: Parent | undefined;
  readonly workflowID: string;
  readonly assumedRole: string;
  readonly inputs: { readonly text: string; readonly serialization: string };
}

function newWorkflow(engine: Engine, parts: NewWorkflowParts): NewWorkflow {
  const { request, context, parent, inputs } = parts;
  const { registration, params } = request;
  const queueName = params.queueName ?? context?.queueName ?? null;
  const options = params.enqueueOptions ?? {};
  const isQueued = queueName !== null;
  const owner = isQueued ? null : engine.newOwner();
  const timeoutMs = timeoutOf(params, context);
  // Both are stored in whole milliseconds.
  const delayMs = (options.delaySeconds ?? 0) > 0 ? Math.ceil((options.delaySeconds ?? 0) * 1000) : null;
  return {
    workflowID: parts.workflowID,
    status: isQueued ? (delayMs === null ? 'ENQUEUED' : 'DELAYED') : 'PENDING',
    name: registration.name,
    className: engine.registry.classNameFor(registration) || null,
    configName: request.configName,
    inputs: inputs.text,
    serialization: inputs.serialization,
    authenticatedUser: params.authenticatedUser ?? context?.authenticatedUser ?? '',
    assumedRole: parts.assumedRole,
    authenticatedRoles: JSON.stringify(params.authenticatedRoles ?? context?.authenticatedRoles ?? []),
    executorID: isQueued ? '' : engine.config.executorID,
    applicationVersion: options.applicationVersion ?? engine.applicationVersion,
    applicationID: engine.config.applicationID,
    applicationName: options.applicationName ?? engine.config.name,
    timeoutMs: timeoutMs == null ? null : Math.ceil(timeoutMs),
    // Without a timeout of its own a child has the parent's deadline; null detaches it.
    deadlineAt: timeoutMs === undefined ? (parent?.run.deadlineAt ?? null) : null,
    queueName,
    queuePartitionKey: options.queuePartitionKey ?? null,
    deduplicationID: options.deduplicationID ?? null,
    priority: options.priority ?? 0,
    debounceDeadlineAt: null,
    isDebounced: false,
    recoveryAttempts: isQueued ? 0 : 1,
    parentWorkflowID: parent?.run.workflowID ?? null,
    parentOwner: parent?.run.owner ?? null,
    scheduleName: null,
    attributes: params.workflowAttributes === undefined ? null : encodeAttributes(params.workflowAttributes),
    owner,
    creator: owner ?? newID(),
    delayMs,
  };
}

function encodeAttributes(attributes: Record<string, unknown>): string {
  const isPlain = typeof attributes === 'object' && attributes !== null && !Array.isArray(attributes);
  try {
    const text = isPlain ? JSON.stringify(attributes) : undefined;
    if (text !== undefined) return text;
  } catch (cause) {
    throw new DBOSError('Invalid workflow attributes: they must be a plain object of JSON values.', 1, { cause });
  }
  throw new DBOSError('Invalid workflow attributes: they must be a plain object of JSON values.');
}

function checkParams(params: StartWorkflowParams, context: Context | undefined): void {
  const { queueName, enqueueOptions = {}, duplicationPolicy } = params;
  const { deduplicationID, priority, queuePartitionKey, delaySeconds, applicationName } = enqueueOptions;
  const workflowID = params.workflowID ?? context?.nextWorkflowID?.workflowID;
  if (workflowID !== undefined && workflowID.trim() === '') {
    throw new DBOSError('A workflow ID must not be empty. Leave it out to get a fresh one.');
  }
  const set = Object.entries({ deduplicationID, priority, queuePartitionKey, delaySeconds, applicationName }).filter(
    ([, value]) => value !== undefined,
  );
  if (set.length > 0 && queueName === undefined && context?.queueName === undefined) {
    throw new DBOSError(
      `Enqueue option(s) ${set.map(([name]) => name).join(', ')} set on a workflow that is not being enqueued. Give a queueName.`,
    );
  }
  if (priority !== undefined && !(Number.isInteger(priority) && priority >= 0 && priority <= PRIORITY_MAX)) {
    throw new DBOSInvalidQueuePriorityError(priority, 0, PRIORITY_MAX);
  }
  if (duplicationPolicy === 'return-existing' && (queueName === undefined || deduplicationID === undefined)) {
    throw new DBOSInvalidWorkflowTransitionError(
      "duplicationPolicy 'return-existing' needs a queueName and enqueueOptions.deduplicationID.",
    );
  }
  const timeoutMS = timeoutOf(params, context) ?? null;
  if (timeoutMS !== null && !(Number.isFinite(timeoutMS) && timeoutMS >= 0)) {
    throw new DBOSError(`timeoutMS must be a finite number and not negative, but is ${timeoutMS}.`);
  }
}

/** Undefined leaves the workflow with the deadline of its parent, null without any. */
function timeoutOf(params: StartWorkflowParams, context: Context | undefined): number | null | undefined {
  return params.timeoutMS !== undefined ? params.timeoutMS : context?.timeoutMs;
}

function remaining(engine: Engine, deadlineAt: number | null): number | null {
  return deadlineAt === null ? null : deadlineAt - engine.clock.now();
}
