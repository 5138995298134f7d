// The public API: `DBOS`, the default instance, and `createDBOS()` for isolated ones. The management verbs come from
// `Management`, what workflow code calls from `Operations`, what says where code runs from `ContextMembers`. Each member here
// is a line or two, and the engine does the work.
import { type DurationText, inMs } from '../../kernel/base/duration.js';
import type { Server } from 'node:http';
import { internals } from '../../kernel/base/internals.js';
import { callSite } from '../../kernel/base/log.js';
import type { ErrorClasses } from '../../kernel/codec/error-classes.js';
import type { SerializationRecipe } from '../../kernel/codec/serializer.js';
import type { ForkFromFailureOptions, ForkOptions, ForkRequest, ForkSettings } from '../../features/lifecycle/forks.js';
import { checkTimeout, type EnqueueWorkflowOptions } from '../../features/queue/enqueue.js';
import { registerQueue } from '../../features/queue/queues.js';
import {
  type DBOSExternalState,
  getEventDispatchState,
  saveEventDispatchState,
} from '../../operator/event-dispatch.js';
import type { WorkflowHandle } from '../../operator/outcome.js';
import type { DBOSConfig } from '../../run/config/config.js';
import type { Engine } from '../../run/engine.js';
import type { Runtime } from '../../run/runtime.js';
import { migrateDatabase } from '../../run/migrate.js';
import { processWide } from '../../run/process-wide.js';
import { type BulkStart, enqueueByName, startWorkflows } from '../../features/queue/enqueue.run.js';
import {
  type AnyConstructor,
  type FunctionName,
  Registry,
  type UserFunction,
  type WorkflowConfig,
} from '../../run/registration/registry.js';
import { callersOf, type Context, defaultRegistry, inContext, setDefaultHost } from '../../run/ambient.js';
import { attempted } from '../../run/shielded.js';
import type { StartWorkflowParams } from '../../run/new-workflow.js';
import type { StepConfig } from '../../run/step.js';
import {
  DBOSInvalidArgumentError,
  DBOSInvalidWorkflowTransitionError,
  type JSONValue,
} from '../../kernel/errors/errors.js';
import { filledName, isRecord } from '../../kernel/check/validation.js';
import type { RegisterQueueOptions } from '../../features/queue/queue.js';
import { endBySignal } from './end-by-signal.js';
import * as verbChecks from '../../operator/verb-checks.js';
import * as checks from './checks.js';
import { callback as callbackCheck, stepConfigCheck } from './function-checks.js';
import type { Associations, ExternalRegistration, FunctionInfo, PluginKey } from './associations.js';
import { forkFromFailure, forkWorkflow, forkWorkflows } from './forks.js';
import { type Functions, isStandardContext, type MethodDecorator } from './functions.js';
import { Instance } from './instance.js';
import { ContextMembers } from './context-members.js';
import type { Lifecycle, TestSettings } from './lifecycle.js';
import {
  type ApplySchedule,
  applySchedules,
  createSchedule,
  type CreateScheduleOptions,
  type SchedulerConfig,
  SchedulerMode,
} from './schedules.js';
import type {
  AlertHandler,
  DBOSContextOptions,
  DBOSLaunchOptions,
  DBOSLifecycleCallback,
  DBOSMethodMiddlewareInstaller,
  InvokeFunctionsAsync,
  InvokeFunctionsAsyncInst,
  ShutdownOptions,
} from './types.js';
import { queueOf, setDefaultQueueOwner, type WorkflowQueue } from './workflow-queue.js';

export type { TestSettings };

export class DBOSInstance extends ContextMembers {
  override readonly [internals]: Instance;

  constructor(testSettings: TestSettings = {}, registry = new Registry()) {
    super();
    this[internals] = new Instance(registry, testSettings);
  }

  get #registry(): Registry {
    return this[internals].registry;
  }

  get #functions(): Functions {
    return this[internals].functions;
  }

  get #associations(): Associations {
    return this[internals].associations;
  }

  get #lifecycle(): Lifecycle {
    return this[internals].lifecycle;
  }

  #engineFor(reason: string): Engine {
    return this[internals].engineFor(reason);
  }

  #runtimeFor(reason: string): Runtime {
    return this.#engineFor(reason).runtime;
  }

  // ── Lifecycle ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** Sets the configuration; before `launch`. */
  setConfig(config: DBOSConfig): void {
    if (!isRecord(config)) throw new DBOSInvalidArgumentError('DBOS.setConfig takes an object of options.', 'config');
    this.#lifecycle.setConfig(config);
  }

  isInitialized(): boolean {
    return this.#lifecycle.engine !== undefined;
  }

  /**
   * Opens the system database, recovers workflows of earlier processes, and starts running workflows. The options are those
   * of DBOS for its Conductor, which Everstep does not connect to.
   */
  async launch(options: DBOSLaunchOptions = {}): Promise<void> {
    checks.launchCheck.read(options, 'options');
    return this.#lifecycle.launch(options);
  }

  /**
   * Stops. Waits for running workflows up to `workflowCompletionTimeoutMS`, by default not at all, and then hands them
   * back, to be continued by another process or the next launch.
   */
  async shutdown(options: ShutdownOptions = {}): Promise<void> {
    checks.shutdownCheck.read(options, 'options');
    return this.#lifecycle.shutdown(options);
  }

  /** Shuts down cleanly on SIGTERM and SIGINT, then ends the process. Returns a function that undoes this. */
  shutdownOnSignals(
    options: {
      readonly signals?: readonly NodeJS.Signals[];
      readonly workflowCompletionTimeoutMS?: number | DurationText;
    } = {},
  ): () => void {
    checks.signalsCheck.read(options, 'options');
    const { signals = ['SIGTERM', 'SIGINT'], workflowCompletionTimeoutMS = 10_000 } = options;
    const onSignal = (signal: NodeJS.Signals): void => {
      release();
      void this.shutdown({ workflowCompletionTimeoutMS }).finally(() => endBySignal(signal));
    };
    const release = (): void => {
      for (const signal of signals) process.removeListener(signal, onSignal);
    };
    for (const signal of signals) process.on(signal, onSignal);
    return release;
  }

  /** Creates the system database if it is missing, migrates it, and grants a role what an application needs. */
  async migrate(
    systemDatabaseUrl: string,
    options: { schemaName?: string; applicationRole?: string } = {},
  ): Promise<void> {
    filledName.read(systemDatabaseUrl, 'systemDatabaseUrl');
    return migrateDatabase(systemDatabaseUrl, options, this.logger);
  }

  /** Clears all registrations, as `shutdown({ deregister: true })` does. Only while not launched. */
  clearRegistry(): void {
    this.#lifecycle.clearRegistry();
  }

  /** Sets the handler for alerts of DBOS Conductor, once and before `launch`. Everstep never calls it. */
  setAlertHandler(handler: AlertHandler): void {
    callbackCheck.read(handler, 'handler');
    this.#lifecycle.setAlertHandler(handler);
  }

  /**
   * Puts the workflows that these executors were running back on their queues, and resolves to their handles. Make sure that
   * the processes are dead. Workflows that this process is running, and those of other versions, do not change.
   */
  async recoverPendingWorkflows(executorIDs: readonly string[] = ['local']): Promise<WorkflowHandle<unknown>[]> {
    checks.executorIDsCheck.read(executorIDs, 'executorIDs');
    const engine = this.#engineFor('recoverPendingWorkflows');
    const recovered: string[] = [];
    for (const executorID of executorIDs) recovered.push(...(await engine.liveness.recoverExecutor(executorID)));
    return recovered.map((workflowID) => engine.handleOfExisting(workflowID));
  }

  registerLifecycleCallback(callback: DBOSLifecycleCallback): void {
    this.#lifecycle.addCallback(callback);
  }

  /** Calls `destroy` of the lifecycle callbacks, once: no more work comes in from outside. Workflows continue. */
  async deactivateEventReceivers(): Promise<void> {
    return this.#lifecycle.deactivateEventReceivers();
  }

  /** Calls `initialize` of the lifecycle callbacks after they were deactivated. */
  async initEventReceivers(): Promise<void> {
    return this.#lifecycle.initEventReceivers();
  }

  /** The HTTP server of the admin interface; undefined if it is not configured, or its port was in use. */
  get adminServer(): Server | undefined {
    return this.#lifecycle.adminServer;
  }

  /** Lets every plugin log what it serves. */
  logRegisteredEndpoints(): void {
    this.#lifecycle.logRegisteredEndpoints();
  }

  /** The object in which a plugin keeps its data about a class. */
  associateClassWithInfo(external: PluginKey, cls: AnyConstructor | string): object {
    return this.#associations.withClass(external, cls);
  }

  /** The object in which a plugin keeps its data about a function. */
  associateFunctionWithInfo<This, Args extends unknown[], Return>(
    external: PluginKey,
    func: (this: This, ...args: Args) => Promise<Return>,
    target: FunctionName,
  ): FunctionInfo {
    return this.#associations.withFunction(external, func as unknown as UserFunction, target);
  }

  /** The same for a parameter, by name or index; undefined if there is none. */
  associateParamWithInfo<This, Args extends unknown[], Return>(
    external: PluginKey,
    func: ((this: This, ...args: Args) => Promise<Return>) | undefined,
    target: FunctionName & { readonly param: number | string },
  ): object | undefined {
    return this.#associations.withParameter(external, func as unknown as UserFunction | undefined, target);
  }

  /** What a plugin has recorded, one entry per function: of all functions, of a class, or of one function. */
  getAssociatedInfo(external: PluginKey, cls?: object | string, funcName?: string): readonly ExternalRegistration[] {
    return this.#associations.find(external, cls, funcName);
  }

  /** Stores a value for a plugin unless a later one is stored, by time or number. Resolves to the stored one. */
  async upsertEventDispatchState(state: DBOSExternalState): Promise<DBOSExternalState> {
    checks.dispatchStateCheck.read(state, 'state');
    const runtime = callersOf(this.#runtimeFor('upsertEventDispatchState'));
    return runtime.retrying(() => saveEventDispatchState(runtime.database, state));
  }

  /** The value a plugin has stored under these names; undefined if there is none. */
  async getEventDispatchState(
    service: string,
    workflowFnName: string,
    key: string,
  ): Promise<DBOSExternalState | undefined> {
    checks.dispatchStateCheck.read({ service, workflowFnName, key }, '');
    const runtime = callersOf(this.#runtimeFor('getEventDispatchState'));
    return runtime.retrying(() => getEventDispatchState(runtime.database, { service, workflowFnName, key }));
  }

  // ── Registration ───────────────────────────────────────────────────────────────────────────────────────────────

  /** Turns an async function into a workflow. Call the returned function instead of the original. */
  registerWorkflow<This, Args extends unknown[], Return>(
    func: (this: This, ...args: Args) => Promise<Return>,
    config: FunctionName & WorkflowConfig = {},
  ): (this: This, ...args: Args) => Promise<Return> {
    // The wrapper has the type of the function.
    return this.#functions.registerWorkflow(func as unknown as UserFunction, config) as unknown as typeof func;
  }

  /** Turns an async function into a step. Call the returned function instead of the original. */
  registerStep<This, Args extends unknown[], Return>(
    func: (this: This, ...args: Args) => Promise<Return>,
    config: FunctionName & StepConfig = {},
  ): (this: This, ...args: Args) => Promise<Return> {
    return this.#functions.registerStep(func as unknown as UserFunction, config) as unknown as typeof func;
  }

  /** Runs a function as a step of the surrounding workflow. */
  runStep<Return>(func: () => Promise<Return>, config: StepConfig = {}): Promise<Return> {
    return attempted(() => {
      callbackCheck.read(func, 'func');
      stepConfigCheck.read(config, 'config');
      return this.#functions.callStep(config.name ?? func.name, config, func);
    });
  }

  /** Decorator: turns a static or instance method into a workflow. */
  workflow(config: WorkflowConfig = {}): MethodDecorator {
    return this.#functions.decorate((fn, owner) => this.#functions.registerWorkflow(fn, config, owner), config.name);
  }

  /** Decorator: turns a static or instance method into a step. */
  step(config: StepConfig = {}): MethodDecorator {
    return this.#functions.decorate((fn, owner) => this.#functions.registerStep(fn, config, owner), config.name);
  }

  /** Class decorator: sets the class name under which workflows are stored. */
  className(name: string): (target: AnyConstructor, context?: unknown) => void {
    filledName.read(name, 'name');
    return (target) => this.#registry.setAlias(target, name);
  }

  /** Method decorator: only users with one of these roles may call the function. */
  requiredRole(anyOf: string[]): MethodDecorator {
    return this.#functions.requireRole(checks.methodRoles.read(anyOf, 'anyOf'));
  }

  /** Class decorator: the required roles of all functions in the class without roles of their own. */
  defaultRequiredRole(anyOf: string[]): (target: AnyConstructor, context?: unknown) => void {
    checks.classRoles.read(anyOf, 'anyOf');
    return (target) => {
      this.#registry.classOf(target).defaultRoles = anyOf;
    };
  }

  /** Installs interceptors on all functions at launch. */
  registerMiddlewareInstaller(installer: DBOSMethodMiddlewareInstaller): void {
    this.#lifecycle.addMiddleware(installer);
  }

  /** Registers a type of your application with the serializer. */
  registerSerialization<T, S extends JSONValue>(recipe: SerializationRecipe<T, S>): void {
    verbChecks.recipeCheck.read(recipe, 'recipe');
    this.#lifecycle.addRecipe(recipe);
  }

  /**
   * Registers classes of errors of your application: workflows get instances of them also when they are replayed. Give
   * classes whose names change, or are not unique, in an object: `DBOS.registerErrors({ 'orders.NotFound': NotFound })`.
   */
  registerErrors(...classes: ErrorClasses): void {
    verbChecks.errorClasses.read(classes, 'classes');
    const { errors, isReloadable } = this.#registry;
    errors.register(classes, { site: callSite(), isReloadable });
  }

  // ── Starting workflows ─────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Starts or enqueues a workflow: `await DBOS.startWorkflow(fn)(…args)`. What it returns has to be called, and resolves to a
   * handle when the workflow is durably recorded.
   */
  startWorkflow<Args extends unknown[], Return>(
    target: (...args: Args) => Promise<Return>,
    params?: StartWorkflowParams,
  ): (...args: Args) => Promise<WorkflowHandle<Return>>;
  startWorkflow<T extends { readonly name: string; initialize(): Promise<void> }>(
    target: T,
    params?: StartWorkflowParams,
  ): InvokeFunctionsAsyncInst<T>;
  startWorkflow<T extends object>(targetClass: T, params?: StartWorkflowParams): InvokeFunctionsAsync<T>;
  startWorkflow(target: unknown, params: StartWorkflowParams = {}): unknown {
    checks.startParamsCheck.read(params, 'params');
    return this.#functions.starterOf(target, params);
  }

  /**
   * Enqueues many workflows of one function in one commit: all of them, or none if one is refused. The options of a
   * single start override `params`, which apply to all. Resolves to their handles, in order.
   */
  startWorkflows<Args extends unknown[], Return>(
    target: (...args: Args) => Promise<Return>,
    starts: readonly BulkStart<Args>[],
    params: StartWorkflowParams = {},
  ): Promise<WorkflowHandle<Return>[]> {
    return attempted(() => {
      callbackCheck.read(target, 'target');
      checks.startsCheck.read(starts, 'starts');
      checks.startParamsCheck.read(params, 'params');
      const workflow = this.#registry.workflowOf(target, target.name);
      const requests = starts.map(({ args, ...own }) => {
        const enqueueOptions = { ...params.enqueueOptions, ...own.enqueueOptions };
        return this.#functions.requestFor(workflow, undefined, args, { ...params, ...own, enqueueOptions });
      });
      return startWorkflows<Return>(this.#engineFor('workflows'), requests);
    });
  }

  /** Enqueues a workflow by function name; the function need not be registered here. */
  enqueueWorkflowWithOptions<T = unknown>(
    options: EnqueueWorkflowOptions,
    ...args: unknown[]
  ): Promise<WorkflowHandle<T>> {
    return attempted(() => enqueueByName<T>(this.#engineFor('enqueueWorkflowWithOptions'), options, args));
  }

  /** The same, with arguments that programs in other languages can read. */
  enqueueWorkflowWithOptionsPortable<T = unknown>(
    options: EnqueueWorkflowOptions,
    positionalArgs: unknown[],
    namedArgs?: Record<string, unknown>,
  ): Promise<WorkflowHandle<T>> {
    return attempted(() => {
      const portable = { ...options, serializationType: 'portable' } as const;
      const engine = this.#engineFor('enqueueWorkflowWithOptionsPortable');
      return enqueueByName<T>(engine, portable, positionalArgs, namedArgs ?? {});
    });
  }

  /** A handle of a workflow, wherever it was started. */
  retrieveWorkflow<T = unknown>(workflowID: string): WorkflowHandle<Awaited<T>> {
    const context = this[internals].contextFor('retrieveWorkflow');
    if (context?.step !== undefined || context?.transactionID !== undefined) {
      throw new DBOSInvalidWorkflowTransitionError('Invalid call to `retrieveWorkflow` inside a step or transaction');
    }
    filledName.read(workflowID, 'workflowID');
    return this.#engineFor('retrieveWorkflow').handleOf<Awaited<T>>(workflowID);
  }

  /** The first workflow started in the callback gets this ID. */
  async withNextWorkflowID<R>(workflowID: string, callback: () => Promise<R>): Promise<R> {
    if (workflowID !== '') filledName.read(workflowID, 'workflowID');
    return this.#within({ nextWorkflowID: { workflowID } }, callback);
  }

  /** Workflows started in the callback run for this user, who has these roles. */
  async withAuthedContext<R>(authedUser: string, authedRoles: string[], callback: () => Promise<R>): Promise<R> {
    const settings = { authenticatedUser: authedUser, authenticatedRoles: authedRoles };
    checks.userCheck.read(settings, '');
    return this.#within(settings, callback);
  }

  /** Names the caller; kept for compatibility, the name has no effect. */
  async withNamedContext<R>(_callerName: string, callback: () => Promise<R>): Promise<R> {
    return this.#within({}, callback);
  }

  /** Workflows started in the callback are enqueued. */
  async withWorkflowQueue<R>(queueName: string, callback: () => Promise<R>): Promise<R> {
    filledName.read(queueName, 'queueName');
    return this.#within({ queueName }, callback);
  }

  /** Workflows started in the callback have this timeout; null detaches them from the deadline of their parent. */
  async withWorkflowTimeout<R>(timeoutMS: number | DurationText | null, callback: () => Promise<R>): Promise<R> {
    checkTimeout(timeoutMS);
    return this.#within({ timeoutMs: inMs(timeoutMS) }, callback);
  }

  /** Sets several of these for the callback at once. */
  async runWithContext<R>(options: DBOSContextOptions, callback: () => Promise<R>): Promise<R> {
    checks.contextCheck.read(options, 'options');
    const { idAssignedForNextWorkflow, queueAssignedForWorkflows, workflowTimeoutMS, serializationType, ...rest } =
      options;
    return this.#within(
      {
        ...rest,
        // Plugins pass on an HTTP header that may be missing.
        ...(idAssignedForNextWorkflow && { nextWorkflowID: { workflowID: idAssignedForNextWorkflow } }),
        ...(queueAssignedForWorkflows !== undefined && { queueName: queueAssignedForWorkflows }),
        ...(workflowTimeoutMS !== undefined && { timeoutMs: inMs(workflowTimeoutMS) }),
        ...(serializationType !== undefined && { serialization: serializationType }),
      },
      callback,
    );
  }

  #within<R>(settings: Partial<Context>, callback: () => Promise<R>): Promise<R> {
    callbackCheck.read(callback, 'callback');
    const runtime = this.#runtimeFor('workflows');
    return inContext({ ...this[internals].context, runtime, ...settings }, callback);
  }

  // ── Forks ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Starts a copy of a workflow from one of its steps. The steps before it are not executed again. */
  forkWorkflow<T>(
    workflowID: string,
    startStep: number,
    options: ForkOptions = {},
  ): Promise<WorkflowHandle<Awaited<T>>> {
    return attempted(() => forkWorkflow(this[internals], { workflowID, startStep }, options));
  }

  /** Forks many workflows in one commit, all or none. Resolves to the handles of the forks, in order. */
  forkWorkflows<T>(
    requests: readonly ForkRequest[],
    settings: ForkSettings = {},
  ): Promise<WorkflowHandle<Awaited<T>>[]> {
    return attempted(() => forkWorkflows(this[internals], requests, settings));
  }

  /** Forks each workflow from the step in which it failed, or from another step. */
  forkFromFailure<T>(
    workflowIDs: readonly string[],
    options: ForkFromFailureOptions,
  ): Promise<WorkflowHandle<Awaited<T>>[]> {
    return attempted(() => forkFromFailure(this[internals], workflowIDs, options));
  }

  // ── Queues ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Registers a queue in the database. By default only the latest version changes an existing one; see `onConflict`. */
  async registerQueue(name: string, options: RegisterQueueOptions = {}): Promise<WorkflowQueue> {
    verbChecks.optionsObject.read(options, 'options');
    const { onConflict = 'update_if_latest_version', ...parameters } = options;
    const runtime = callersOf(this.#runtimeFor('registerQueue'));
    const { applicationName, applicationVersion } = runtime;
    const registration = { name, parameters, onConflict, applicationName, applicationVersion };
    return queueOf(runtime, await registerQueue(runtime, registration));
  }

  // ── Schedules ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** Creates a schedule in the database: the workflow runs whenever the cron expression is due. */
  createSchedule(options: CreateScheduleOptions): Promise<void> {
    return attempted(() => createSchedule(this[internals], options));
  }

  /** Creates or replaces several schedules, all or none. Existing ones keep their status. */
  async applySchedules(schedules: ApplySchedule[]): Promise<void> {
    return applySchedules(this[internals], schedules);
  }

  /** Decorator: runs a static workflow whenever the cron expression is due. */
  scheduled(config: SchedulerConfig): MethodDecorator {
    const decorator = (target: unknown, contextOrKey: unknown, descriptor?: PropertyDescriptor): void => {
      this.#addCodeSchedule(isStandardContext(contextOrKey) ? target : descriptor?.value, config);
    };
    return decorator as unknown as MethodDecorator;
  }

  /** Runs a registered workflow whenever the cron expression is due. */
  registerScheduled(func: (scheduledTime: Date, startedTime: Date) => Promise<unknown>, config: SchedulerConfig): void {
    this.#addCodeSchedule(func, config);
  }

  #addCodeSchedule(fn: unknown, config: SchedulerConfig): void {
    const { crontab, mode, queueName } = checks.codeScheduleCheck.read(config, 'config');
    // The scheduler has those of the first load.
    if (this.#registry.isReloadable && this.#registry.engine) return;
    this.#registry.refuseAfterLaunch();
    const automaticBackfill = mode === SchedulerMode.ExactlyOncePerInterval;
    this.#registry.codeSchedules.add({ fn: fn as UserFunction, crontab, queueName, automaticBackfill });
  }
}

/** Another instance, isolated from `DBOS` and all others: with its own functions, configuration and engine. */
export function createDBOS(testSettings?: TestSettings): DBOSInstance {
  return new DBOSInstance(testSettings);
}

/** The default instance. */
export const DBOS = processWide('DBOS', () => new DBOSInstance({}, defaultRegistry));
setDefaultQueueOwner(DBOS);
setDefaultHost(DBOS);
