// Calls functions in transactions of data sources. In workflow code a call is a step; outside of workflows it just runs.
// The handler of a data source is our own, or that of a plugin with a protocol of its own.
import {
  DBOSConflictingRegistrationError,
  DBOSExecutorNotInitializedError,
  DBOSInvalidWorkflowTransitionError,
  DBOSNotRegisteredError,
  DBOSWorkflowConflictError,
} from '../../kernel/errors/errors.js';
import { Engine } from '../../run/engine.js';
import type { Registry } from '../../run/registration/registry.js';
import type { PublishedMessage } from '../../features/history/run-journal.run.js';
import { type Context, currentContext, inContext, isWorkflowCode } from '../../run/ambient.js';
import { attempted } from '../../run/shielded.js';
import { type ActiveStep, elsewhere, type KeptOutcome, perform } from '../../run/perform.js';
import type { Run } from '../../run/run.js';
import type { DataSourceTransactionHandler } from './data-source-handler.run.js';
import { TransactionStep } from './transaction-step.run.js';
import { findLossReason, isOwner } from '../../run/loss.js';

/** Our own handler. Unlike those of plugins, it runs steps and says where their outcome is durable. */
export interface StepTransactionHandler extends DataSourceTransactionHandler {
  /** Runs the body in a transaction, as a step. Passes the barrier itself, no later than its commit. */
  performTransaction(step: TransactionStep, config: unknown, body: () => Promise<unknown>): Promise<KeptOutcome>;
}

function runsSteps(handler: DataSourceTransactionHandler): handler is StepTransactionHandler {
  return 'performTransaction' in handler;
}

export interface TransactionCall {
  readonly dsName: string;
  /** The name of the step. */
  readonly name: string;
  /** For the handler. */
  readonly config: unknown;
  readonly target: unknown;
  readonly func: (this: unknown, ...args: never[]) => Promise<unknown>;
  readonly args: readonly unknown[];
  /** Checks the caller's roles and returns the context for the step. */
  readonly authorize?: (context: Context) => Context;
}

/** Runs the function in a transaction, the way that every handler supports. */
function invoke(
  handler: DataSourceTransactionHandler,
  { config, target, func, args }: TransactionCall,
): Promise<unknown> {
  return handler.invokeTransactionFunction(config, target, func, ...(args as never[]));
}

/** Runs a function in a transaction. In workflow code it is a step. */
export function callTransaction(registry: Registry, call: TransactionCall): Promise<unknown> {
  return attempted(() => callOrThrow(registry, call));
}

// On the path of every transaction, a function that only passes a promise on is not async: each one that is makes up to
// four more promises.
function callOrThrow(registry: Registry, call: TransactionCall): Promise<unknown> {
  const { name } = call;
  const context = currentContext();
  const engine = context?.run ? Engine.of(context.run.runtime) : Engine.launchedWith(registry);
  if (!engine) {
    if (registry.isShuttingDown) throw DBOSExecutorNotInitializedError.duringShutdown('transactions');
    throw new DBOSExecutorNotInitializedError('`DBOS.launch()` must be called before running transactions.');
  }
  const handler = handlerFor(engine, registry, call.dsName);
  if (context?.transactionID !== undefined || context?.step !== undefined) {
    throw new DBOSInvalidWorkflowTransitionError(
      `Invalid call to \`${name}\` inside a \`step\` or \`transaction\`. Call transactions from the workflow itself.`,
    );
  }
  if (isWorkflowCode(context)) return runAsStep(engine, context, { call, handler });
  const own = { ...context, runtime: engine.runtime };
  return inContext({ ...(call.authorize?.(own) ?? own), transactionID: 0 }, () => invoke(handler, call));
}

function handlerFor(engine: Engine, registry: Registry, dsName: string): DataSourceTransactionHandler {
  if (engine.runtime.registry !== registry) {
    throw new DBOSNotRegisteredError(
      dsName,
      `Data source "${dsName}" is registered with another engine than the one that runs the calling workflow. ` +
        'Give it the owner that runs the workflow.',
    );
  }
  const handler = registry.dataSources.get(dsName);
  if (handler) return handler;
  throw new DBOSNotRegisteredError(
    dsName,
    `Data source "${dsName}" is not registered. Create it, or call registerDataSource, before DBOS.launch().`,
  );
}

interface HandledCall {
  readonly call: TransactionCall;
  readonly handler: DataSourceTransactionHandler;
}

function runAsStep(engine: Engine, context: Context & { readonly run: Run }, handled: HandledCall): Promise<unknown> {
  const { spans } = context.run;
  if (!spans) return performAsStep(engine, context, handled);
  const { call } = handled;
  return spans.operation(context, {
    type: 'transaction',
    name: call.name,
    perform: (traced, begin) => {
      const func: TransactionCall['func'] = function run(this: unknown, ...args: never[]) {
        return begin(() => call.func.apply(this, args))();
      };
      return performAsStep(engine, traced, { ...handled, call: { ...call, func } });
    },
  });
}

function performAsStep(
  engine: Engine,
  context: Context & { readonly run: Run },
  { call, handler }: HandledCall,
): Promise<unknown> {
  const { run } = context;
  const { name } = call;
  const stepID = run.nextStepID();
  const journaled = { ...call, func: beginning(engine, { run, stepID, func: call.func }) };
  const authorized = call.authorize?.(context) ?? context;
  // An earlier run has left a checkpoint, and maybe a completion record.
  if (run.recordAt(stepID)) run.trackDataSource(handler);
  const body = elsewhere((step) =>
    inContext({ ...authorized, transactionID: stepID }, () => invokeAsStep(engine, { call: journaled, handler, step })),
  );
  return perform(run, { name, stepID, isEffect: !runsSteps(handler), format: 'named', identity: call.args }, body);
}

/** Each attempt publishes messages of its own, and ends some time after its run was halted. */
function beginning(
  { transactions }: Engine,
  { run, stepID, func }: { readonly run: Run; readonly stepID: number; readonly func: TransactionCall['func'] },
): TransactionCall['func'] {
  return function begin(this: unknown, ...args: never[]): Promise<unknown> {
    run.journal.beginTransaction(stepID);
    return transactions.endWith(run, func.apply(this, args));
  };
}

async function invokeAsStep(
  { transactions }: Engine,
  { call, handler, step }: HandledCall & { readonly step: ActiveStep },
): Promise<KeptOutcome> {
  const { run, stepID } = step;
  const { config, target, func, args } = call;
  // Until the handler says otherwise: an earlier run, or a plugin, may have left a completion record.
  let mayLeaveRecord = true;
  try {
    const kept = runsSteps(handler)
      ? await handler.performTransaction(new TransactionStep(step, transactions), config, () =>
          func.apply(target, args as never[]),
        )
      : await invokePlugin(run, () => invoke(handler, call));
    if (kept.outcome.kind === 'value') run.journal.commitTransaction(stepID);
    mayLeaveRecord = kept.durability === 'recorded' || kept.durability === 'unknown';
    return kept;
  } finally {
    if (mayLeaveRecord) run.trackDataSource(handler);
  }
}

async function invokePlugin(run: Run, invokeIt: () => Promise<unknown>): Promise<KeptOutcome> {
  return { outcome: { kind: 'value', value: await invokeOwned(run, invokeIt) }, durability: 'unknown' };
}

/**
 * A plugin with a protocol of its own may report a conflict with another run. If this run still owns the workflow, the
 * other was a former owner, and a retry of the plugin finds what it recorded.
 */
async function invokeOwned(run: Run, invokeIt: () => Promise<unknown>): Promise<unknown> {
  try {
    return await invokeIt();
  } catch (error) {
    if (!(error instanceof DBOSWorkflowConflictError)) throw error;
    run.check();
    if (await isOwner(run)) return invokeIt();
    run.stop(await findLossReason(run));
    throw error;
  }
}

/** Throws if the calling run no longer owns the workflow. For data sources to call inside their transaction. */
export async function assertStillOwnsWorkflow(workflowID: string): Promise<void> {
  const run = currentContext()?.run;
  if (run?.workflowID !== workflowID) return;
  if (!(await run.runtime.owners.owns(run))) throw new DBOSWorkflowConflictError(workflowID);
}

export function addDataSource(registry: Registry, handler: DataSourceTransactionHandler): void {
  // The first one stays: it is open, and serves the transactions of all copies.
  if (registry.isReloadable && registry.dataSources.has(handler.name)) return;
  registry.refuseAfterLaunch();
  if (registry.dataSources.has(handler.name)) {
    throw new DBOSConflictingRegistrationError(
      `Data source "${handler.name}" is registered twice. Give one of them another name.`,
    );
  }
  registry.dataSources.set(handler.name, handler);
}

/** Notes for the history of the calling workflow what its transaction publishes. */
export function notePublished(message: PublishedMessage): void {
  const { run, transactionID } = currentContext() ?? {};
  if (run && transactionID !== undefined) run.journal.published(transactionID, message);
}
