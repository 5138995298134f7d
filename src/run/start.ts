// Starts workflows: from a call to a durable row, and on to a run, or to a handle of a workflow that already exists.
import { invariant } from '../kernel/base/assert.js';
import { newID } from '../kernel/base/ids.js';
import type { InputsRoundTrip } from '../kernel/codec/codec.js';
import { andThen, isPromise, type MaybePromise } from '../kernel/codec/maybe-promise.js';
import { resolveStartConflict, type ConflictingStart } from '../features/queue/start-conflict.js';
import { refuseNUL } from '../operator/storable.js';
import { givenID } from '../features/queue/enqueue.js';
import { refuseMissingKey } from '../features/queue/queue-target.js';
import { DBOSInvalidWorkflowTransitionError, DBOSWorkflowIDInUseError } from '../kernel/errors/errors.js';
import type { StepRecord } from '../kernel/workflow/records.js';
import type { NewWorkflow } from './rows/workflows.js';
import type { ChildVerdict } from './writer/write-group.js';
import type { CheckpointVerdict, StartVerdict } from './writer/writer-verdicts.js';
import { type Context, contextOf, isWorkflowCode } from './ambient.js';
import { authorize } from './registration/authorization.js';
import type { Engine } from './engine.js';
import type { Standing } from '../features/liveness/lease.run.js';
import { argumentsOf } from './arguments.js';
import { Handle } from './handles.js';
import { checkParams, newWorkflow, type Parent, type StartRequest, type StartWorkflowParams } from './new-workflow.js';
import { joined, perform } from './perform.js';
import { Run } from './run.js';

/** Characters of an input that any database takes. */
const SMALL_INPUT_MAX = 1_000_000;

/**
 * Starts or enqueues a workflow and resolves when its row is durable. `stepID` is its number in workflow code, if the
 * caller has reserved it.
 */
export function startWorkflow<R>(engine: Engine, request: StartRequest, stepID?: number): Promise<Handle<R>> {
  const context = contextOf(engine.runtime.registry);
  refuseInStep(context, request.callee.name);
  const run = isWorkflowCode(context) ? context.run : undefined;
  return start(engine, request, context, run && { run, stepID: stepID ?? run.nextStepID() });
}

/** A direct call: starts the workflow and awaits its result. In workflow code it takes two numbers. */
export async function callWorkflow(engine: Engine, request: StartRequest): Promise<unknown> {
  const context = contextOf(engine.runtime.registry);
  refuseInStep(context, request.callee.name);
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
  // Before the first await: the next workflow to start must not get the same assigned ID.
  const assignedID = takeAssignedID(request.params.workflowID, context);
  if (parent) {
    const workflowID = assignedID ?? `${parent.run.childPrefix}-${parent.stepID}`;
    return startChild({ engine, request, context, workflowID }, parent);
  }
  const prepared = await prepareStart({ engine, request, context, workflowID: assignedID ?? newID() });
  // A fresh random ID cannot be in use, so the run can start before the row is inserted. Not with a large input, which the
  // database may refuse: then no code may have run.
  const isSmall = (prepared.workflow.inputs?.length ?? 0) <= SMALL_INPUT_MAX;
  if (assignedID === undefined && prepared.workflow.status === 'PENDING' && isSmall) {
    const { handle, created } = startFresh<R>(prepared);
    await created;
    return handle;
  }
  const { writer } = engine.runtime.store;
  const written = writer.start(prepared.workflow, { isFromOutside: true });
  // What is written after the caller has given up runs nevertheless.
  return writer.inTime(
    prepared.workflow,
    written.then((verdict) => attach<R>(prepared, verdict)),
  );
}

interface StartCall {
  readonly engine: Engine;
  readonly request: StartRequest;
  readonly context: Context | undefined;
  readonly workflowID: string;
}

interface PreparedStart extends StartCall {
  readonly workflow: NewWorkflow;
  readonly args: unknown[];
  /** Before the row is written. */
  readonly standing: Standing;
}

/** Makes the row. Waits while the writer's backlog is full. */
async function prepareStart(call: StartCall, parent?: Parent): Promise<PreparedStart> {
  const { engine, request, context, workflowID } = call;
  const { runtime } = engine;
  const encoding = authorizeAndEncode(engine, request, context);
  const { assumedRole, inputs } = isPromise(encoding) ? await encoding : encoding;
  const room = runtime.store.writer.room({ isFromOutside: !parent });
  if (room) await room;
  const workflow = newWorkflow(runtime, { request, context, workflowID, parent, assumedRole, inputs });
  return {
    engine,
    request,
    context,
    workflowID,
    workflow,
    args: argumentsOf(inputs),
    standing: runtime.lease.standing,
  };
}

/** Checks the partition key and the caller's roles, and encodes the arguments. */
export function authorizeAndEncode(
  engine: Engine,
  request: StartRequest,
  context: Context | undefined,
): MaybePromise<{ readonly assumedRole: string; readonly inputs: InputsRoundTrip }> {
  const { callee, args, namedArgs, params } = request;
  const { registration } = callee;
  const queueName = params.queueName ?? context?.queueName;
  if (queueName !== undefined) refuseMissingPartition(engine, queueName, params);
  const assumedRole = registration
    ? authorize(engine.runtime, registration, context, params)
    : (context?.assumedRole ?? '');
  const encoding = engine.runtime.codec.roundTripInputs(args, {
    format: callee.format ?? context?.serialization,
    namedArgs,
    path: [callee.name, '<arguments>'],
  });
  return andThen(encoding, (inputs) => ({ assumedRole, inputs: refuseNUL(inputs) }));
}

/** A workflow without a partition key would never leave a partitioned queue. */
function refuseMissingPartition(engine: Engine, queueName: string, { enqueueOptions }: StartWorkflowParams): void {
  const { known } = engine.queues;
  const { name } = engine.runtime.config;
  // Queues of other applications are known to their processes.
  if ((enqueueOptions?.applicationName ?? name) === name) known.warnIfUnknown(queueName);
  const isPartitioned = known.find(queueName)?.limits.partition != null;
  refuseMissingKey({ queueName, partitionKey: enqueueOptions?.queuePartitionKey ?? null, isPartitioned });
}

/** `created` resolves when the row is durable. It is left to the caller: a promise that it returned would cost two more. */
function startFresh<R>(prepared: PreparedStart): { readonly handle: Handle<R>; readonly created: Promise<void> } {
  const { engine, workflow } = prepared;
  const run = newRun(prepared, null);
  const { writer } = engine.runtime.store;
  const created = writer.start(workflow, { isFromOutside: true }).then((verdict) => {
    if (verdict.kind !== 'created') throw new DBOSWorkflowIDInUseError(workflow.workflowID, 'PENDING', workflow.name);
    run.deadlineAt = verdict.deadlineAt;
    engine.deadlines.watch(run);
  });
  run.followInsert(created);
  return { handle: launch<R>(prepared, run), created: writer.inTime(workflow, created) };
}

/** The child's row and the parent's checkpoint are one write. */
function startChild<R>(call: StartCall, parent: Parent): Promise<Handle<R>> {
  const { engine, request, workflowID } = call;
  const operation = {
    name: request.callee.name,
    stepID: parent.stepID,
    // After the barrier, the parent's deadline is known, which the child may inherit.
    isEffect: true,
    format: 'named',
    identity: [request.params.workflowID, ...request.args, request.namedArgs],
    read: ({ childWorkflowID }: StepRecord) => engine.handleOfExisting<R>(childWorkflowID ?? workflowID),
  } as const;
  return perform(
    parent.run,
    operation,
    joined(async (step) => {
      const prepared = await prepareStart(call, parent);
      const checkpoint = { ...step.checkpoint({ childWorkflowID: workflowID }), child: prepared.workflow };
      const written = engine.runtime.store.writer.startChild({ start: prepared.workflow, checkpoint });
      const { start: verdict } = await step.commit(written, parentVerdict);
      if (verdict.kind === 'created') return attach<R>(prepared, verdict);
      // The write was skipped. Record the existing workflow, or the refusal, in a checkpoint by itself.
      try {
        const handle = await attach<R>(prepared, verdict);
        step.record({ childWorkflowID: handle.workflowID });
        return handle;
      } catch (error) {
        return step.fail(error);
      }
    }),
  );
}

/** What happened to the parent's checkpoint, which is only written if this start created the child. */
function parentVerdict({ start, checkpoint }: ChildVerdict): CheckpointVerdict | undefined {
  switch (start.kind) {
    case 'created':
      return checkpoint;
    case 'orphaned':
      return 'lost';
    case 'exists':
    case 'duplicated':
      return undefined;
  }
}

/** Runs or announces a workflow that was created; returns a handle of one that exists. */
async function attach<R>(prepared: PreparedStart, verdict: StartVerdict): Promise<Handle<R>> {
  const { engine, workflow } = prepared;
  switch (verdict.kind) {
    case 'created': {
      if (workflow.status !== 'PENDING') {
        engine.queues.announce([workflow]);
        return engine.handleOfExisting(workflow.workflowID);
      }
      const run = newRun(prepared, verdict.deadlineAt);
      engine.deadlines.watch(run);
      return launch<R>(prepared, run);
    }
    default:
      return engine.handleOfExisting(resolveStartConflict(conflictingStartOf(prepared), verdict));
  }
}

/** The workflow, with the caller's policies for the case that it exists. */
export function conflictingStartOf({
  engine,
  request,
  workflow,
}: Pick<PreparedStart, 'engine' | 'request' | 'workflow'>): ConflictingStart {
  const { duplicationPolicy, workflowIDReusePolicy } = request.params;
  return { logger: engine.runtime.logger, workflow, duplicationPolicy, workflowIDReusePolicy };
}

function newRun({ engine, request, workflow, standing }: PreparedStart, deadlineAt: number | null): Run {
  const { registration } = request.callee;
  invariant(registration, 'A workflow that is known by name only is always enqueued.');
  return new Run({
    runtime: engine.runtime,
    registration,
    workflowID: workflow.workflowID,
    owner: workflow.owner ?? '',
    creator: workflow.creator,
    deadlineAt,
    isPortable: workflow.serialization === 'portable_json',
    queueName: null,
    partitionKey: null,
    standing,
  });
}

function launch<R>(prepared: PreparedStart, run: Run): Handle<R> {
  const { engine, request, args } = prepared;
  const end = engine.runs.launch({ run, target: request.target, args, context: runContext(prepared, run) });
  return new Handle<R>(engine.runtime, run.workflowID, { local: end, own: run.registration });
}

/** The context of the workflow's code: the caller's settings, but not the caller's run or step. */
function runContext({ engine, context, workflow }: PreparedStart, run: Run): Context {
  return {
    ...context,
    runtime: engine.runtime,
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

/** The ID assigned to this workflow, by parameter or by context, if any; an empty one is none. Call it before any await. */
export function takeAssignedID(workflowID: string | undefined, context: Context | undefined): string | undefined {
  const next = context?.nextWorkflowID;
  const ambientID = next?.workflowID;
  if (next) next.workflowID = undefined;
  return givenID(workflowID) ?? givenID(ambientID);
}
