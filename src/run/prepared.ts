// For event receivers: prepares workflows one by one as messages arrive, and enqueues them together. The workflow ID
// comes from the message, so a message that is delivered twice starts one workflow.
import { enqueuedWorkflow } from '../features/queue/enqueue.js';
import { DBOSInvalidArgumentError, DBOSInvalidWorkflowInputError } from '../kernel/errors/errors.js';
import { filledName, optional, storableName } from '../kernel/check/validation.js';
import { type EventDispatchState, upsertEventDispatchState } from './rows/event-dispatch.js';
import { withRetry } from '../database/retry.js';
import { insertWorkflows, type NewWorkflow } from './rows/workflows.js';
import { judgeAllStarts } from './writer/writer-verdicts.js';
import type { Engine } from './engine.js';
import type { Runtime } from './runtime.js';
import { inChunks } from '../features/queue/enqueue.run.js';
import { validateInputs } from './registration/input-schema.js';
import type { WorkflowRegistration } from './registration/registry.js';

const optionalName = optional(storableName);

export interface PrepareEnqueuedWorkflowOptions {
  readonly queueName: string;
  readonly workflowID: string;
  readonly queuePartitionKey?: string;
}

/** A workflow that is ready to be enqueued, with the field names of DBOS. */
export interface PreparedWorkflow {
  readonly workflowUUID: string;
  readonly status: string;
  readonly workflowName: string;
  readonly workflowClassName: string;
  readonly workflowConfigName: string;
  readonly queueName?: string;
  readonly queuePartitionKey?: string;
  readonly deduplicationID?: string;
  readonly priority: number;
  readonly input: string;
  readonly serialization: string;
  readonly output: null;
  readonly error: null;
  readonly authenticatedUser: string;
  readonly assumedRole: string;
  readonly authenticatedRoles: string[];
  readonly executorId: string;
  readonly applicationID: string;
  readonly applicationVersion?: string;
  readonly applicationName?: string;
}

/** Validates and encodes the arguments. Ignores the caller's context. */
export async function prepareEnqueuedWorkflow(
  engine: Engine,
  registration: WorkflowRegistration,
  args: readonly unknown[],
  { queueName, workflowID, queuePartitionKey }: PrepareEnqueuedWorkflowOptions,
): Promise<PreparedWorkflow> {
  const { applicationVersion, config, registry } = engine.runtime;
  const { name } = registration;
  if (registration.isInstance) {
    throw new DBOSInvalidArgumentError(
      `"${name}" is an instance method. Only functions and static methods can be prepared.`,
      'workflow',
    );
  }
  filledName.read(queueName, 'options.queueName');
  filledName.read(workflowID, 'options.workflowID');
  optionalName.read(queuePartitionKey, 'options.queuePartitionKey');
  const { text, serialization } = await encode(engine.runtime, registration, args);
  return {
    workflowUUID: workflowID,
    status: 'ENQUEUED',
    workflowName: name,
    workflowClassName: registry.classNameFor(registration),
    workflowConfigName: '',
    queueName,
    queuePartitionKey,
    priority: 0,
    input: text,
    serialization,
    output: null,
    error: null,
    authenticatedUser: '',
    assumedRole: '',
    authenticatedRoles: [],
    executorId: '',
    applicationID: config.applicationID,
    applicationVersion,
    applicationName: config.name,
  };
}

async function encode({ codec }: Runtime, { name, config }: WorkflowRegistration, args: readonly unknown[]) {
  try {
    if (config.inputSchema) await validateInputs(config.inputSchema, [...args]);
    return await codec.encodeInputs(args, config.serialization);
  } catch (cause) {
    throw new DBOSInvalidWorkflowInputError(name, cause);
  }
}

export interface EnqueuePreparedOptions {
  /** Receiver state to store in the same commit. */
  readonly states?: readonly EventDispatchState[];
  /** Ends the retries while the database is down. */
  readonly signal?: AbortSignal;
}

/** Enqueues in one commit, skipping workflows whose ID is in use. Returns the IDs of the new ones. */
export async function enqueuePrepared(
  engine: Engine,
  prepared: readonly PreparedWorkflow[],
  { states = [], signal }: EnqueuePreparedOptions = {},
): Promise<Set<string>> {
  if (prepared.length === 0 && states.length === 0) return new Set();
  const workflows = prepared.map(toNewWorkflow);
  const { clock, database, logger } = engine.runtime;
  const inserts = inChunks(workflows).map((chunk) => insertWorkflows(chunk));
  const enqueue = async () => {
    const written = await database.commit([...inserts, ...states.map((state) => upsertEventDispatchState(state))]);
    return judgeAllStarts(database, workflows, written.slice(0, inserts.length).flat());
  };
  const verdicts = await (signal
    ? withRetry(enqueue, { clock, logger, signal, isIdempotent: true, isPatient: true })
    : engine.runtime.retrying(enqueue));
  const created = workflows.filter((_, index) => verdicts[index]?.kind === 'created');
  engine.queues.announce(created);
  return new Set(created.map(({ workflowID }) => workflowID));
}

/** The row of a prepared workflow. */
export function toNewWorkflow(prepared: PreparedWorkflow): NewWorkflow {
  const { workflowUUID, status, queueName, deduplicationID } = prepared;
  if (status !== 'ENQUEUED' || queueName === undefined) {
    throw new DBOSInvalidArgumentError(
      `Workflow "${workflowUUID}" cannot be enqueued: it is ${status}, or it has no queue.`,
    );
  }
  if (deduplicationID !== undefined) {
    throw new DBOSInvalidArgumentError(
      `Workflow "${workflowUUID}" has a deduplication ID, which a batch does not support.`,
      'deduplicationID',
    );
  }
  return enqueuedWorkflow({
    workflowID: workflowUUID,
    name: prepared.workflowName,
    className: prepared.workflowClassName || null,
    configName: prepared.workflowConfigName || null,
    inputs: prepared.input,
    serialization: prepared.serialization,
    authenticatedUser: prepared.authenticatedUser,
    assumedRole: prepared.assumedRole,
    authenticatedRoles: JSON.stringify(prepared.authenticatedRoles),
    executorID: prepared.executorId,
    applicationVersion: prepared.applicationVersion ?? null,
    applicationID: prepared.applicationID,
    applicationName: prepared.applicationName ?? null,
    queueName,
    queuePartitionKey: prepared.queuePartitionKey ?? null,
    priority: prepared.priority,
  });
}
