// The ambient context: the engine, run and step that code belongs to, and what callers have set for the workflows they
// start. It follows the async call chain, so user code need not pass it on.
import { AsyncLocalStorage } from 'node:async_hooks';
import { invariant } from '../kernel/base/assert.js';
import type { WorkflowSerializationFormat } from '../kernel/codec/serializer.js';
import type { DLogger } from '../kernel/base/log.js';
import { DBOSInvalidWorkflowTransitionError } from '../kernel/errors/errors.js';
import { processWide } from './process-wide.js';
import type { Wait } from '../operator/row-watcher.js';
import type { Runtime } from './runtime.js';
import { Registry } from './registration/registry.js';
import type { DBOSSpan } from './tracing.js';
import type { Run } from './run.js';

/** The running step, as user code sees it. */
export interface StepStatus {
  readonly stepID: number;
  /** Counted from 1. Only if retries are allowed. */
  readonly currentAttempt?: number;
  readonly maxAttempts?: number;
  /** Aborts when the attempt times out. */
  readonly timeoutSignal?: AbortSignal;
  /** Aborts when the workflow is cancelled. */
  readonly cancelSignal: AbortSignal;
}

/** The ID for the next workflow that is started. Whatever starts it first clears it for all that share the context. */
export interface NextWorkflowID {
  workflowID: string | undefined;
}

export interface Context {
  readonly runtime: Runtime;
  readonly run?: Run;
  readonly step?: StepStatus;
  /** The number of the running data source transaction; 0 outside of workflows. */
  readonly transactionID?: number;
  /** Set in a transaction of a data source. */
  readonly client?: TransactionClient;
  /** The span of the running workflow, step or transaction, if spans are made. */
  readonly span?: DBOSSpan;
  readonly nextWorkflowID?: NextWorkflowID;
  readonly queueName?: string;
  /** Null detaches from the parent's deadline. */
  readonly timeoutMs?: number | null;
  readonly authenticatedUser?: string;
  readonly authenticatedRoles?: readonly string[];
  readonly assumedRole?: string;
  readonly logger?: DLogger;
  readonly request?: object;
  readonly serialization?: WorkflowSerializationFormat;
}

/** The client of a transaction, and the data source that opened it. */
export interface TransactionClient {
  readonly owner: object;
  readonly client: unknown;
}

const storage = processWide('context', () => new AsyncLocalStorage<Context>());

/** The registry of `DBOS` itself. It is here because plugins may be created before `DBOS` is loaded. */
export const defaultRegistry = processWide('registry', () => new Registry());

/** The instance that receivers use by default: `DBOS` itself. */
const defaults = processWide('defaults', (): { host?: object } => ({}));

export function setDefaultHost(host: object): void {
  defaults.host = host;
}

export function getDefaultHost(): object | undefined {
  return defaults.host;
}

export function currentContext(): Context | undefined {
  return storage.getStore();
}

/** The runtime as the code that calls may use it: workflows and their steps wait for the database, others for some time. */
export function callersOf(runtime: Runtime): Runtime {
  return currentContext()?.run ? runtime : runtime.callers;
}

/** The current context, unless it belongs to the engine of another registry. */
export function contextOf(registry: Registry): Context | undefined {
  const context = currentContext();
  return context?.runtime.registry === registry ? context : undefined;
}

/**
 * Throws in a workflow of another instance, its steps and transactions included: a call would act on that instance's
 * database, or would not be part of the workflow's history and act again in each replay.
 */
export function refuseInOtherWorkflow(registry: Registry, called: string): void {
  const context = currentContext();
  if (context?.run === undefined || context.runtime.registry === registry) return;
  throw new DBOSInvalidWorkflowTransitionError(
    `Cannot run ${called} here: workflow "${context.run.workflowID}" runs on another instance. ` +
      "Use a DBOSClient for this instance's system database.",
  );
}

export function inContext<T>(context: Context, body: () => T): T {
  return storage.run(context, body);
}

/**
 * Waits for something outside of the current run. Meanwhile the run does not count against this process's capacity. Workflow
 * code that waits may leave the process, code of a step may not.
 */
export function whileWaiting<T>(begin: (suspended?: AbortSignal) => Promise<T>, wait?: Wait): Promise<T> {
  const context = currentContext();
  if (!context?.run) return begin();
  return context.run.waits.waitFor(begin, isWorkflowCode(context) ? wait : undefined);
}

/** True in the workflow's own code, not in its steps and transactions. */
export function isWorkflowCode(context: Context | undefined): context is Context & { readonly run: Run } {
  return context?.run !== undefined && context.step === undefined && context.transactionID === undefined;
}

/** Runs the body of a transaction with its client in the context. */
export function inClient<T>(owner: object, client: unknown, body: () => T): T {
  const context = currentContext();
  invariant(context, 'a transaction runs in a context');
  return inContext({ ...context, client: { owner, client } }, body);
}

export function currentClient(): TransactionClient | undefined {
  return currentContext()?.client;
}
