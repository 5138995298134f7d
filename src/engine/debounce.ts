// Debouncing: many calls with one key become one workflow, which runs with the input of the last call when no further
// call has come for a while.
import { DBOSError, DBOSQueueDuplicatedError } from '../model/errors.js';
import { bounceIfDelayed } from '../store/debounce.js';
import { INTERNAL_QUEUE } from '../store/lifecycle.js';
import { findDeduplicationHolders } from '../store/workflows.js';
import type { Engine } from './engine.js';
import type { Handle } from './handles.js';
import type { Callee, StartRequest, StartWorkflowParams } from './new-workflow.js';
import { operation } from './operation.js';
import { startWorkflow } from './start.js';

export interface DebounceRequest extends Omit<StartRequest, 'debounce'> {
  readonly key: string;
  readonly periodMs: number;
  /** The longest time that a workflow can be put off from its first call on. */
  readonly timeoutMs: number | undefined;
  /** The application that runs it; this one if not given. */
  readonly applicationName?: string;
}

const BOUNCE = { name: 'DBOS.debounceDelayedWorkflow', isEffect: true } as const;

/** Starts the workflow that stands for the key, or puts it off and gives it the new input. */
export async function debounce<R>(engine: Engine, request: DebounceRequest): Promise<Handle<R>> {
  checkDebounce(request);
  for (;;) {
    const bouncedID = await operation(BOUNCE, () => bounce(engine, request));
    if (bouncedID !== null) return engine.handleOf<R>(bouncedID);
    try {
      return await startWorkflow<R>(engine, toStart(request));
    } catch (error) {
      // Somebody else was first: put that one off instead. After a recovery the error is of no class.
      if ((error as { code?: unknown }).code !== 'QUEUE_DUPLICATED') throw error;
    }
  }
}

/** The ID of the workflow that was put off; null if the key is free. */
async function bounce(engine: Engine, request: DebounceRequest): Promise<string | null> {
  const { callee, args, namedArgs, params } = request;
  const { database } = engine.store;
  const { text: inputs, serialization } = await engine.codec.encodeInputs(args, callee.format, namedArgs);
  const queueName = queueOf(params);
  const deduplicationID = deduplicationOf(request);
  const applicationName = request.applicationName ?? engine.config.name;
  for (;;) {
    const bouncedID = await engine.retrying(() =>
      bounceIfDelayed(database, {
        queueName,
        deduplicationID,
        name: callee.name,
        className: callee.className,
        applicationName,
        periodMs: Math.ceil(request.periodMs),
        inputs,
        serialization,
      }),
    );
    if (bouncedID !== undefined) {
      engine.queueing.announceDelayed();
      return bouncedID;
    }
    const [holder] = await engine.retrying(() => findDeduplicationHolders(database, [{ queueName, deduplicationID }]));
    if (!holder) return null;
    const isOurs =
      holder.isDebounced &&
      isSameCallee(holder, callee) &&
      (holder.applicationName === null || holder.applicationName === applicationName);
    if (!isOurs) throw new DBOSQueueDuplicatedError(params.workflowID ?? '', queueName, deduplicationID);
    // It is about to leave DELAYED, or came in between: look again.
  }
}

function isSameCallee(holder: { readonly name: string; readonly className: string | null }, callee: Callee): boolean {
  return holder.name === callee.name && (holder.className ?? '') === (callee.className ?? '');
}

function toStart(request: DebounceRequest): StartRequest {
  const { callee, target, args, namedArgs, params, periodMs, timeoutMs, applicationName } = request;
  const delayMs = timeoutMs === undefined ? periodMs : Math.min(periodMs, timeoutMs);
  return {
    callee,
    target,
    args,
    namedArgs,
    params: {
      ...params,
      queueName: queueOf(params),
      // Whoever calls first does not decide how long the workflow may run.
      timeoutMS: params.timeoutMS ?? null,
      enqueueOptions: {
        ...params.enqueueOptions,
        deduplicationID: deduplicationOf(request),
        delaySeconds: delayMs / 1000,
        applicationName,
      },
    },
    debounce: { timeoutMs: timeoutMs === undefined ? null : Math.ceil(timeoutMs) },
  };
}

function queueOf(params: StartWorkflowParams): string {
  return params.queueName ?? INTERNAL_QUEUE;
}

function deduplicationOf({ callee, key }: DebounceRequest): string {
  return `${callee.className ?? ''}.${callee.name}-${key}`;
}

function checkDebounce({ key, periodMs, timeoutMs, params }: DebounceRequest): void {
  if (typeof key !== 'string') throw new DBOSError('A debounce key must be a string.');
  if (!(Number.isFinite(periodMs) && periodMs > 0)) {
    throw new DBOSError(`debouncePeriodMs must be a positive number, but is ${periodMs}.`);
  }
  if (timeoutMs !== undefined && !(Number.isFinite(timeoutMs) && timeoutMs > 0)) {
    throw new DBOSError(`debounceTimeoutMs must be a positive number, but is ${timeoutMs}.`);
  }
  const { deduplicationID, delaySeconds, priority, queuePartitionKey, applicationName } = params.enqueueOptions ?? {};
  const refused = Object.entries({ deduplicationID, delaySeconds, priority, queuePartitionKey, applicationName })
    .filter(([, value]) => value !== undefined)
    .map(([name]) => name);
  if (params.duplicationPolicy === 'return-existing') refused.push("duplicationPolicy 'return-existing'");
  if (params.workflowIDReusePolicy === 'reject') refused.push("workflowIDReusePolicy 'reject'");
  if (refused.length > 0) throw new DBOSError(`A debounced workflow cannot have: ${refused.join(', ')}.`);
}
