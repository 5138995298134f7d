// Transactions of data sources: called from workflow code they are steps; outside of workflows they just run. The engine
// knows a data source by its handler only: one of our kit, or one of a plugin with a protocol of its own.
import { Batcher, type Entry } from '../../base/batcher.js';
import type { Clock } from '../../base/clock.js';
import {
  DBOSConflictingRegistrationError,
  DBOSInvalidWorkflowTransitionError,
  DBOSNotRegisteredError,
  DBOSWorkflowConflictError,
} from '../../model/errors/errors.js';
import { isSameDatabase, type Query } from '../../store/transactions/shared-database.js';
import { findLost } from '../../store/runs/workflows.js';
import { type Context, currentContext, inContext, isWorkflowCode } from '../runs/ambient.js';
import type { Engine } from '../engine.js';
import { RecordDeletions } from './record-deletions.js';
import type { Registry } from '../registration/registry.js';
import { type ActiveStep, elsewhere, type KeptOutcome, perform } from '../runs/perform.js';
import type { Run } from '../runs/run.js';
import { TransactionStep } from './transaction-step.js';

/** What a data source hands to the engine, so that the engine can run functions in its transactions. */
export interface DataSourceTransactionHandler {
  readonly name: string;
  /** The kind of data source, for people. */
  readonly dsType?: string;
  /** Called at launch: connects, and throws a clear error if the database or its tables are not there. */
  initialize(): Promise<void>;
  /** Called at shutdown. */
  destroy(): Promise<void>;
  /**
   * Deletes the records of a workflow from a step on. `beforeCommit` is awaited between the deletion and its commit; if
   * it throws, all is rolled back.
   */
  deleteCheckpoints?(workflowID: string, startStep: number, beforeCommit?: () => Promise<void>): Promise<void>;
  /** The same for all steps of several workflows, in one transaction. */
  deleteCheckpointsOfAll?(workflowIDs: readonly string[], beforeCommit: () => Promise<void>): Promise<void>;
  /** Workflows whose records are too old for any run to still need them: those after an ID, in order. */
  listRecorded?(afterID: string, max: number): Promise<string[]>;
  /** Runs the function in a transaction. */
  invokeTransactionFunction<This, Args extends unknown[], Return>(
    config: unknown,
    target: This,
    func: (this: This, ...args: Args) => Promise<Return>,
    ...args: Args
  ): Promise<Return>;
}

/** A handler of our kit. Beside what plugins do, it runs steps and says what it has kept of them. */
export interface StepTransactionHandler extends DataSourceTransactionHandler {
  /** Runs the body in a transaction, as a step. It waits for the barrier itself, at the latest before it commits. */
  performTransaction(step: TransactionStep, config: unknown, body: () => Promise<unknown>): Promise<KeptOutcome>;
}

function runsSteps(handler: DataSourceTransactionHandler): handler is StepTransactionHandler {
  return 'performTransaction' in handler;
}

/** A call of a function in a transaction. */
export interface TransactionCall {
  readonly dsName: string;
  /** The name of the step. */
  readonly name: string;
  /** For the handler. */
  readonly config: unknown;
  readonly target: unknown;
  readonly func: (this: unknown, ...args: never[]) => Promise<unknown>;
  readonly args: readonly unknown[];
  /** Completes the context of a step, or refuses the caller. */
  readonly authorize?: (context: Context & { readonly run: Run }) => Context;
}

/** Runs the function in a transaction, as every handler can. */
function invoke(
  handler: DataSourceTransactionHandler,
  { config, target, func, args }: TransactionCall,
): Promise<unknown> {
  return handler.invokeTransactionFunction(config, target, func, ...(args as never[]));
}

/** Runs a function in a transaction: as a step if called in workflow code. */
export async function callTransaction(registry: Registry, call: TransactionCall): Promise<unknown> {
  const { name } = call;
  const context = currentContext();
  const engine = context?.run?.engine ?? registry.engine;
  if (!engine) throw new TypeError('`DBOS.launch()` must be called before running transactions.');
  const handler = handlerFor(engine, registry, call.dsName);
  if (context?.transactionID !== undefined || context?.step !== undefined) {
    throw new DBOSInvalidWorkflowTransitionError(
      `Invalid call to \`${name}\` inside a \`step\` or \`transaction\`. Call transactions from the workflow itself.`,
    );
  }
  if (isWorkflowCode(context)) return runAsStep(context, call, handler);
  if (context?.nextWorkflowID?.workflowID !== undefined) {
    throw new DBOSInvalidWorkflowTransitionError(
      `Transaction "${name}" was called where a workflow ID is assigned. Only a workflow can have an ID.`,
    );
  }
  return inContext({ ...context, engine, transactionID: 0 }, () => invoke(handler, call));
}

function handlerFor(engine: Engine, registry: Registry, dsName: string): DataSourceTransactionHandler {
  if (engine.registry !== registry) {
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

async function runAsStep(
  context: Context & { readonly run: Run },
  call: TransactionCall,
  handler: DataSourceTransactionHandler,
): Promise<unknown> {
  const { run } = context;
  const { name } = call;
  const stepID = run.nextStepID();
  const authorized = call.authorize?.(context) ?? context;
  // As long as the handler does not say otherwise: an earlier run, or a plugin, may have left a record there.
  let mayLeaveRecord = true;
  const body = elsewhere(async (step) => {
    const kept = await inContext({ ...authorized, transactionID: stepID }, () => invokeAsStep(handler, call, step));
    mayLeaveRecord = kept.durability === 'recorded' || kept.durability === 'unknown';
    return kept;
  });
  try {
    return await perform(run, { name, stepID, isEffect: !runsSteps(handler), format: 'named' }, body);
  } finally {
    if (mayLeaveRecord) run.noteDataSource(handler);
  }
}

async function invokeAsStep(
  handler: DataSourceTransactionHandler,
  call: TransactionCall,
  step: ActiveStep,
): Promise<KeptOutcome> {
  const { config, target, func, args } = call;
  if (runsSteps(handler)) {
    const body = async (): Promise<unknown> => func.apply(target, args as never[]);
    return handler.performTransaction(new TransactionStep(step), config, body);
  }
  const value = await invokeOwned(step.run, () => invoke(handler, call));
  return { outcome: { kind: 'value', value }, durability: 'unknown' };
}

/**
 * A plugin with a protocol of its own may report that another run was faster. If this run still owns the workflow, that
 * one was a former owner, and the plugin finds what it did on the next try.
 */
async function invokeOwned(run: Run, invokePlugin: () => Promise<unknown>): Promise<unknown> {
  try {
    return await invokePlugin();
  } catch (error) {
    if (!(error instanceof DBOSWorkflowConflictError)) throw error;
    run.check();
    if ((await run.tryToOwn()) === 'owned') return invokePlugin();
    run.stop(await run.whyLost());
    throw error;
  }
}

/** Throws if the calling run no longer owns the workflow. For data sources, inside their transaction. */
export async function assertStillOwnsWorkflow(workflowID: string): Promise<void> {
  const run = currentContext()?.run;
  if (run?.workflowID !== workflowID) return;
  if (!(await run.engine.transactions.owns(run))) throw new DBOSWorkflowConflictError(workflowID);
}

export function addDataSource(registry: Registry, handler: DataSourceTransactionHandler): void {
  registry.refuseAfterLaunch();
  if (registry.dataSources.has(handler.name)) {
    throw new DBOSConflictingRegistrationError(
      `Data source "${handler.name}" is registered twice. Give one of them another name.`,
    );
  }
  registry.dataSources.set(handler.name, handler);
}

/** Waits for a promise that does not reject, with a time limit. */
async function atMost(clock: Clock, promise: Promise<unknown>): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = clock.after(CLOSE_MAX_MS, resolve);
    void promise.then(() => {
      timer.cancel();
      resolve();
    });
  });
}

const CHECKS_MAX = 500;
/** How long a shutdown waits for each. */
const CLOSE_MAX_MS = 5_000;

/** What an engine does for all its transactions together. */
export class Transactions {
  readonly #engine: Engine;
  readonly #ownership: Batcher<Run, boolean>;
  readonly #deletions: RecordDeletions;
  readonly #shared = new Map<object, boolean>();
  readonly #opened: DataSourceTransactionHandler[] = [];

  constructor(engine: Engine) {
    this.#engine = engine;
    this.#deletions = new RecordDeletions({
      clock: engine.clock,
      logger: engine.logger,
      database: engine.store.database,
    });
    this.#ownership = new Batcher<Run, boolean>({
      flush: (batch) => this.#lookForOwners(batch),
      itemsMax: CHECKS_MAX,
      backlogMax: Infinity,
    });
  }

  /** Whether the run still owns its workflow. Concurrent calls share one query. */
  owns(run: Run): Promise<boolean> {
    return this.#ownership.submit(run);
  }

  async #lookForOwners(batch: readonly Entry<Run, boolean>[]): Promise<void> {
    const runs = [...new Set(batch.map(({ item }) => item))];
    const lost = await findLost(this.#engine.store.database, runs);
    for (const { item, resolve } of batch) resolve(!lost.has(item));
  }

  /** Whether a data source works on the system database. The answer is cached; a failure is not. */
  async isShared(source: object, query: Query): Promise<boolean> {
    const known = this.#shared.get(source);
    if (known !== undefined) return known;
    const isShared = await isSameDatabase(this.#engine.store.database, query);
    this.#shared.set(source, isShared);
    return isShared;
  }

  /** Deletes what all data sources keep of a workflow from a step on: these steps will run again. */
  async deleteFrom(workflowID: string, startStep: number, assertEnded: () => Promise<void>): Promise<void> {
    for (const handler of this.#engine.registry.dataSources.values()) {
      await handler.deleteCheckpoints?.(workflowID, startStep, assertEnded);
    }
  }

  /** The workflows were deleted: their IDs may be used again. A run of theirs may still leave a record. */
  async forgetDeleted(workflowIDs: readonly string[]): Promise<void> {
    for (const handler of this.#engine.registry.dataSources.values()) {
      await this.#deletions.now(handler, workflowIDs);
      for (const workflowID of workflowIDs) this.#deletions.add(handler, workflowID, true);
    }
  }

  /** The outcome of the run is durable: the records of its steps in data sources are no longer needed. */
  forget({ workflowID, dataSources, mayHaveConcurrentOwner }: Run): void {
    for (const handler of dataSources ?? []) this.#deletions.add(handler, workflowID, mayHaveConcurrentOwner);
  }

  /** Lets all data sources connect, and starts to look for records that dead processes have left there. */
  async open(): Promise<void> {
    for (const handler of this.#engine.registry.dataSources.values()) {
      // Before it can fail: it may have connected by then.
      this.#opened.push(handler);
      await handler.initialize();
    }
    this.#deletions.start(this.#opened);
  }

  /** Flushes pending deletions and lets all data sources close, within a time limit each. */
  async close(): Promise<void> {
    const { clock, logger } = this.#engine;
    await atMost(clock, this.#deletions.stop());
    for (const handler of this.#opened.splice(0)) {
      const closed = handler.destroy().catch((error: unknown) => {
        logger.warn(`Data source "${handler.name}" could not be closed: ${String(error)}`);
      });
      // A function that never ends keeps its connection.
      await atMost(clock, closed);
    }
  }
}
