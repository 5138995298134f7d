// The ambient context: the engine, run and step that code belongs to, and what callers have set for the workflows they
// start. It follows the async call chain, so that user code passes nothing on by hand.
import { AsyncLocalStorage } from 'node:async_hooks';
import { invariant } from '../../base/assert.js';
import type { WorkflowSerializationFormat } from '../../codec/serializer.js';
import type { DLogger } from '../../base/log.js';
import type { Runtime } from '../runtime.js';
import { Registry } from '../registration/registry.js';
import type { Run } from './run.js';

/** The step that is running, as user code may see it. */
export interface StepStatus {
  readonly stepID: number;
  /** Counted from 1; only when retries are allowed. */
  readonly currentAttempt?: number;
  readonly maxAttempts?: number;
  /** Aborts when the attempt has used up its time. */
  readonly timeoutSignal?: AbortSignal;
  /** Aborts when the workflow is cancelled. */
  readonly cancelSignal: AbortSignal;
}

/** An ID for the next workflow that is started, no matter which callee starts it. */
export interface NextWorkflowID {
  workflowID: string | undefined;
}

export interface Context {
  readonly runtime: Runtime;
  readonly run?: Run;
  readonly step?: StepStatus;
  /** The function ID of the datasource transaction that is running. */
  readonly transactionID?: number;
  /** The client of the transaction, and the data source that has opened it. */
  readonly client?: TransactionClient;
  readonly nextWorkflowID?: NextWorkflowID;
  readonly queueName?: string;
  /** null detaches from the deadline of the parent. */
  readonly timeoutMs?: number | null;
  readonly authenticatedUser?: string;
  readonly authenticatedRoles?: readonly string[];
  readonly assumedRole?: string;
  readonly logger?: DLogger;
  readonly request?: object;
  readonly serialization?: WorkflowSerializationFormat;
}

/** The client that the functions of a transaction use. */
export interface TransactionClient {
  readonly owner: object;
  readonly client: unknown;
}

/** The registry of `DBOS` itself. Plugins may be created before `DBOS` is loaded. */
export const defaultRegistry = new Registry();

const storage = new AsyncLocalStorage<Context>();

/** The instance that plugins use by default: `DBOS` itself. */
let defaultHost: object | undefined;

export function setDefaultHost(host: object): void {
  defaultHost = host;
}

export function getDefaultHost(): object | undefined {
  return defaultHost;
}

export function currentContext(): Context | undefined {
  return storage.getStore();
}

export function inContext<T>(context: Context, body: () => T): T {
  return storage.run(context, body);
}

/** Waits for something outside of the current run, which takes no slot in this process meanwhile. */
export function whileWaiting<T>(promise: Promise<T>): Promise<T> {
  const run = currentContext()?.run;
  return run ? run.waitFor(promise) : promise;
}

/** True in the code of the workflow itself, not in its steps and transactions. */
export function isWorkflowCode(context: Context | undefined): context is Context & { readonly run: Run } {
  return context?.run !== undefined && context.step === undefined && context.transactionID === undefined;
}

/** Runs the body of a transaction, which finds its client in the context. */
export function inClient<T>(owner: object, client: unknown, body: () => T): T {
  const context = currentContext();
  invariant(context, 'a transaction runs in a context');
  return inContext({ ...context, client: { owner, client } }, body);
}

/** The client of the current transaction. */
export function currentClient(): TransactionClient | undefined {
  return currentContext()?.client;
}
