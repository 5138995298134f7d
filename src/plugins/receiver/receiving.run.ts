// The part of the engine that event receivers use: finding the functions they serve, turning a batch of messages into
// workflows in one commit, and storing state in the system database.
import { ReceivedLetters } from '../../features/dead-letter/received-letters.js';
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../kernel/base/clock.js';
import { internals } from '../../kernel/base/internals.js';
import type { DLogger } from '../../kernel/base/log.js';
import { withTimeLimit } from '../../kernel/base/time-limit.js';
import { PORTABLE_FORMAT } from '../../kernel/codec/serializer.js';
import { limitsOf, type QueueParameters, type QueueRecord, toQueueRecord } from '../../features/queue/queue.js';
import { InvalidReceiverError } from '../../kernel/errors/errors.js';
import {
  deleteEventDispatchState,
  type EventDispatchState,
  findEventDispatchState,
  listEventDispatchStates,
} from '../../run/rows/event-dispatch.js';
import { countWaiting } from '../../features/queue/queue-stats.sql.js';
import { findQueue } from '../../features/queue/queues.sql.js';
import { withRetry } from '../../database/retry.js';
import { findWorkflows } from '../../run/rows/workflows.js';
import { getDefaultHost } from '../../run/ambient.js';
import type { Engine } from '../../run/engine.js';
import {
  enqueuePrepared,
  type EnqueuePreparedOptions,
  type PreparedWorkflow,
  prepareEnqueuedWorkflow,
  type PrepareEnqueuedWorkflowOptions,
} from '../../run/prepared.js';
import type { FunctionName, Registry, UserFunction } from '../../run/registration/registry.js';

/** A function that is registered with a receiver. */
export interface ServedFunction {
  readonly methodConfig?: unknown;
  readonly methodReg: {
    readonly name: string;
    readonly className: string;
    readonly isInstance: boolean;
    readonly workflowConfig?: object;
    readonly registeredFunction: UserFunction;
  };
}

/** What receivers need of their instance: `DBOS`, or one made by `createDBOS`. */
export interface ReceivingHost {
  readonly logger: DLogger;
  readonly [internals]: {
    readonly registry: Registry;
    engineFor(reason: string): Engine;
    registerMemoryQueue(record: QueueRecord): void;
  };
  registerLifecycleCallback(callback: object): void;
  associateFunctionWithInfo(
    external: object,
    func: (this: unknown, ...args: never[]) => Promise<unknown>,
    target: FunctionName,
  ): object;
  getAssociatedInfo(external: object): readonly ServedFunction[];
}

/** The given host, or the default one. */
export function receivingHost<Host extends HttpInstance | ReceivingHost = ReceivingHost>(given?: Host): Host {
  const host = given ?? (getDefaultHost() as Host | undefined);
  if (host) return host;
  throw new InvalidReceiverError(
    "There is no DBOS here yet. Import { DBOS } from 'everstep' before you use receivers.",
  );
}

/** What HTTP handlers need of a workflow handle. */
export interface StartedWorkflow {
  readonly workflowID: string;
  getResult(): Promise<unknown>;
}

/** What HTTP handlers need of the instance. */
export interface HttpInstance {
  readonly logger: DLogger;
  readonly [internals]: { engineFor(reason: string): Engine };
  startWorkflow<Args extends unknown[], Return>(
    workflow: (...args: Args) => Promise<Return>,
    params: { readonly workflowID?: string; readonly queueName?: string },
  ): (...args: Args) => Promise<StartedWorkflow>;
  getWorkflowStatus(workflowID: string): Promise<{
    readonly status: string;
    readonly workflowName: string;
    readonly createdAt: number;
    readonly updatedAt?: number;
  } | null>;
  getEvent(workflowID: string, key: string, timeoutSeconds: number): Promise<unknown>;
}

export function nowOf(host: HttpInstance): number {
  return host[internals].engineFor('HTTP handlers').runtime.clock.now();
}

/** The name of a workflow function with its class. */
export function workflowNameOf(host: HttpInstance, workflow: (...args: never[]) => Promise<unknown>): string {
  const { registry } = host[internals].engineFor('HTTP handlers').runtime;
  return registry.fullNameOf(registry.workflowOf(workflow, workflow.name));
}

/** Whether the workflow was started with these arguments. True if it is deleted, or its arguments are. */
export async function hasArguments(host: HttpInstance, workflowID: string, args: readonly unknown[]): Promise<boolean> {
  const { runtime } = host[internals].engineFor('HTTP handlers');
  const [record] = await runtime.callers.retrying(() => findWorkflows(runtime.database, [workflowID]));
  if (record === undefined || record.inputs === null) return true;
  const format = record.serialization === PORTABLE_FORMAT ? 'portable' : 'native';
  const given = await runtime.codec.roundTripInputs(args, { format });
  if (given.text === record.inputs) return true;
  // A serializer need not be deterministic, so the texts alone prove no difference.
  const stored = await runtime.codec.decodeInputs(record.inputs, record.serialization);
  return isDeepStrictEqual(stored.args, given.args);
}

/** The promise's value, or the fallback after a timeout. */
export async function valueWithin<T>(
  host: HttpInstance,
  promise: Promise<T>,
  timeoutMs: number,
  fallback: T,
): Promise<T> {
  return withTimeLimit(host[internals].engineFor('HTTP handlers').runtime.clock, timeoutMs, promise, () => fallback);
}

/** Makes the host's engine serve a queue even if `listenQueues` does not name it. `parameters` define it in memory. */
export function serveQueue(host: ReceivingHost, name: string, parameters?: QueueParameters): void {
  const { registry } = host[internals];
  registry.alwaysServed.add(name);
  if (parameters && !registry.queues.has(name))
    host[internals].registerMemoryQueue(toQueueRecord(name, parameters, null));
}

export type { EventDispatchState, PreparedWorkflow };

/** The engine of a launched host, as receivers use it. */
export class Receiving {
  readonly clock: Clock;
  readonly logger: DLogger;
  readonly #engine: Engine;

  constructor(host: ReceivingHost) {
    this.#engine = host[internals].engineFor('event receivers');
    this.clock = this.#engine.runtime.clock;
    this.logger = this.#engine.runtime.logger;
  }

  /** The name of a workflow function with its class. */
  fullNameOf(fn: UserFunction): string {
    const { registry } = this.#engine.runtime;
    return registry.fullNameOf(registry.workflowOf(fn, fn.name));
  }

  prepare(
    fn: UserFunction,
    args: readonly unknown[],
    options: PrepareEnqueuedWorkflowOptions,
  ): Promise<PreparedWorkflow> {
    return prepareEnqueuedWorkflow(this.#engine, this.#engine.runtime.registry.workflowOf(fn, fn.name), args, options);
  }

  /** Enqueues the workflows and stores the states in one commit. Returns the IDs of the new workflows. */
  commit(workflows: readonly PreparedWorkflow[], options: EnqueuePreparedOptions): Promise<Set<string>> {
    return enqueuePrepared(this.#engine, workflows, options);
  }

  /** How many workflows wait on the queue, counted up to `max`. Retries while the database is down. */
  countWaiting(queueName: string, max: number, signal: AbortSignal): Promise<number> {
    const { clock, logger } = this;
    const count = () => countWaiting(this.#engine.runtime.store.database, queueName, max);
    return withRetry(count, { clock, logger, signal, isIdempotent: true, isPatient: true });
  }

  /** Whether the queue is partitioned; undefined if it is unknown. */
  async isPartitioned(queueName: string): Promise<boolean | undefined> {
    const { registry, store } = this.#engine.runtime;
    const record = registry.queues.get(queueName) ?? (await findQueue(store.database, queueName));
    return record ? limitsOf(record).partition !== null : undefined;
  }

  findState(name: Pick<EventDispatchState, 'service' | 'workflowFnName' | 'key'>) {
    return findEventDispatchState(this.#engine.runtime.store.database, name);
  }

  listStates(name: Pick<EventDispatchState, 'service' | 'workflowFnName'>): Promise<EventDispatchState[]> {
    return listEventDispatchStates(this.#engine.runtime.store.database, name);
  }

  /** The dead letters of a function. */
  lettersOf(functionName: string): ReceivedLetters {
    return new ReceivedLetters(this.#engine.runtime, functionName);
  }

  deleteState(name: Pick<EventDispatchState, 'service' | 'workflowFnName' | 'key'>): Promise<void> {
    return deleteEventDispatchState(this.#engine.runtime.store.database, name);
  }
}
