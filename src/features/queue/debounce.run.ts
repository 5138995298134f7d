// Debouncing: calls with the same key become one workflow, which runs with the input of the last call once no further
// call has come for a while.
import { checkDebounce, debounceID, firstDelayMs, putOff, refusedParams } from './debounce.js';
import { INTERNAL_QUEUE } from './queue.js';
import type { Engine } from '../../run/engine.js';
import { callersOf, currentContext, isWorkflowCode } from '../../run/ambient.js';
import type { Handle } from '../../run/handles.js';
import type { StartRequest, StartWorkflowParams } from '../../run/new-workflow.js';
import { operation } from '../../run/operation.js';
import { startWorkflow } from '../../run/start.js';

export interface DebounceRequest extends Omit<StartRequest, 'debounce'> {
  readonly key: string;
  readonly periodMs: number;
  /** How long calls can postpone the workflow in total, counted from the first call. */
  readonly timeoutMs: number | undefined;
  /** The application that runs the workflow. Default: this one. */
  readonly applicationName?: string;
}

const BOUNCE = { name: 'DBOS.debounceDelayedWorkflow', isEffect: true } as const;

/** Starts the key's workflow, or postpones it and replaces its input. */
export async function debounce<R>(engine: Engine, request: DebounceRequest): Promise<Handle<R>> {
  const { params } = request;
  // The debouncer itself names the application.
  const named = params.enqueueOptions?.applicationName === undefined ? [] : ['applicationName'];
  checkDebounce(request, [...refusedParams(params), ...named]);
  for (;;) {
    // Both numbers before the first await: which of several debounced calls is faster must not change them.
    const numbers = takeNumbers();
    const bouncedID = await operation({ ...BOUNCE, stepID: numbers?.bounceID }, () => bounce(engine, request));
    if (bouncedID !== null) return engine.handleOfExisting<R>(bouncedID);
    try {
      return await startWorkflow<R>(engine, toStart(request), numbers?.startID);
    } catch (error) {
      // Another caller was first: postpone that workflow instead. A replayed error has a code but not its class.
      if ((error as { code?: unknown }).code !== 'QUEUE_DUPLICATED') throw error;
    }
  }
}

/** In workflow code, the numbers of a postponement and of a start. The second is not used if there is nothing to start. */
function takeNumbers(): { readonly bounceID: number; readonly startID: number } | undefined {
  const context = currentContext();
  if (!isWorkflowCode(context)) return undefined;
  return { bounceID: context.run.nextStepID(), startID: context.run.nextStepID() };
}

/** The ID of the workflow that was postponed; null if the key is free. */
async function bounce(engine: Engine, request: DebounceRequest): Promise<string | null> {
  const { callee, args, namedArgs, params } = request;
  const { text: inputs, serialization } = await engine.runtime.codec.encodeInputs(args, callee.format, namedArgs);
  return putOff(callersOf(engine.runtime), {
    queueName: queueOf(params),
    deduplicationID: debounceID(callee, request.key),
    name: callee.name,
    className: callee.className,
    applicationName: request.applicationName ?? engine.runtime.applicationName,
    periodMs: Math.ceil(request.periodMs),
    inputs,
    serialization,
  });
}

function toStart(request: DebounceRequest): StartRequest {
  const { callee, target, args, namedArgs, params, periodMs, timeoutMs, applicationName } = request;
  return {
    callee,
    target,
    args,
    namedArgs,
    params: {
      ...params,
      queueName: queueOf(params),
      // Do not inherit the timeout of whichever caller came first.
      timeoutMS: params.timeoutMS ?? null,
      enqueueOptions: {
        ...params.enqueueOptions,
        deduplicationID: debounceID(callee, request.key),
        delaySeconds: firstDelayMs({ periodMs, timeoutMs }) / 1000,
        applicationName,
      },
    },
    debounce: { timeoutMs: timeoutMs === undefined ? null : Math.ceil(timeoutMs) },
  };
}

function queueOf(params: StartWorkflowParams): string {
  return params.queueName ?? INTERNAL_QUEUE;
}
