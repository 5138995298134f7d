// What users import: `DBOS`, the default instance, and `createDBOS()` for further ones that share nothing with it. Each
// member is a line or two; what it does stands in the engine.

import {
  type DBOSExternalState,
  getEventDispatchState,
  saveEventDispatchState,
} from '../control/receiving/event-dispatch.js';
import type { Server } from 'node:http';
import { createAdmin } from '../admin/admin.js';
import { AdminServer } from '../admin/http/server.js';
import { explainWorkflow, type WorkflowExplanation } from '../control/management/explain.js';
import {
  getAllEvents,
  getAllNotifications,
  getAllStreamEntries,
  type NotificationInfo,
} from '../control/listing/inspection.js';
import {
  type ApplicationRowCounts,
  renameApplication,
  type RenameApplicationOptions,
} from '../control/management/applications.js';
import type { ForkFromFailureOptions, ForkOptions, ForkRequest, ForkSettings } from '../control/management/forks.js';
import {
  type CancelOptions,
  cancelWorkflows,
  deleteWorkflows,
  type ResumeOptions,
  resumeWorkflows,
} from '../control/management/lifecycle.js';
import {
  garbageCollect,
  type GarbageCollected,
  type GarbageCollectOptions,
  globalTimeout,
} from '../control/management/retention.js';
import type { RewindOptions } from '../control/management/rewind.js';
import type { Operator } from '../control/operator.js';
import type { ReadStreamOffsetOptions, ReadStreamOptions } from '../control/messaging/streams.js';
import {
  getMetrics,
  getStepAggregates,
  type GetStepAggregatesInput,
  getWorkflowAggregates,
  type GetWorkflowAggregatesInput,
  type Metric,
  type StepAggregate,
  type WorkflowAggregate,
} from '../control/listing/aggregates.js';
import { setWorkflowAttributes, updateWorkflowAttributes } from '../control/management/attributes.js';
import type { ExportedWorkflow, ExportSource } from '../control/management/export-format.js';
import {
  createOptionalIndex,
  dropOptionalIndex,
  listOptionalIndexes,
  type OptionalIndex,
  type OptionalIndexInfo,
} from '../control/listing/indexes.js';
import {
  type ExportInput,
  exportWorkflows,
  type ImportOptions,
  type ImportResult,
  importWorkflows,
} from '../control/management/transfer.js';
import {
  countWorkflows,
  eachOf,
  findQueuedRecords,
  findWorkflowPage,
  findWorkflowRecords,
  type GetWorkflowsInput,
  readPage,
  readWorkflows,
  type WorkflowFilters,
  type WorkflowPage,
  type WorkflowPageInput,
} from '../control/listing/listing.js';
import { findWorkflowSteps, readSteps, type StepsQuery } from '../control/listing/steps.js';
import {
  deleteQueue,
  findQueueRecord,
  getQueueStats,
  listQueueRecords,
  pauseQueue,
  type QueueStats,
  type QueueStatsQuery,
  registerQueue,
  resumeQueue,
} from '../control/queues/queues.js';
import {
  deleteSchedule,
  getSchedule,
  listSchedules,
  pauseSchedule,
  resumeSchedule,
  nextRuns,
  type ScheduleFilters,
  type ScheduleUpdate,
  updateSchedule,
  type WorkflowSchedule,
} from '../control/schedules/schedules.js';
import {
  getLatestApplicationVersion,
  listApplicationVersions,
  setLatestApplicationVersion,
  type SetLatestVersionOptions,
  type VersionInfo,
} from '../control/management/versions.js';
import { setWorkflowDelay, type SetWorkflowDelayOptions, setWorkflowPriority } from '../control/queues/waiting.js';
import type { QueueRecord, RegisterQueueOptions } from '../model/queues.js';
import { consoleLogger, type DLogger, type LogLevel } from '../base/log.js';
import { Codec } from '../codec/codec.js';
import type { SerializationRecipe } from '../codec/serializer.js';
import {
  DBOSAlreadyLaunchedError,
  DBOSConflictingRegistrationError,
  DBOSExecutorNotInitializedError,
  DBOSInvalidArgumentError,
  DBOSInvalidWorkflowTransitionError,
  DBOSNotRegisteredError,
  type JSONValue,
} from '../model/errors/errors.js';
import { stackHere } from '../base/stack.js';
import { filledName } from '../model/validation/validation.js';
import {
  type Context,
  currentContext,
  defaultRegistry,
  inContext,
  isWorkflowCode,
  setDefaultHost,
  type StepStatus,
} from '../engine/runs/ambient.js';
import { type DBOSConfig, type EngineConfig, resolveConfig } from '../engine/config/config.js';
import { Engine, type EngineOptions } from '../engine/engine.js';
import type { EnqueueWorkflowOptions } from '../control/queues/enqueue.js';
import type { WorkflowHandle } from '../control/runs/outcome.js';
import { type BulkStart, enqueueByName, startWorkflows } from '../engine/queues/enqueue.js';
import { debounce, type DebounceRequest } from '../engine/queues/debounce.js';
import { getEvent, type GetEventOptions, setEvent } from '../engine/messaging/events.js';
import { getResult, type GetResultOptions, getWorkflowStatus } from '../engine/runs/handles.js';
import type { BulkMessage } from '../control/messaging/messages.js';
import { recv, type RecvOptions, send, sendBulk } from '../engine/messaging/messages.js';
import { durableSleep, operation } from '../engine/runs/operation.js';
import { deprecatePatch, patch } from '../engine/runs/patch.js';
import {
  type AnyConstructor,
  type FunctionName,
  Registry,
  type UserFunction,
  type WorkflowConfig,
} from '../engine/registration/registry.js';
import type { StartWorkflowParams } from '../engine/runs/new-workflow.js';
import {
  handleRequests,
  request,
  type RequestFunction,
  type RequestHandlers,
  type RequestOptions,
} from '../engine/messaging/requests.js';
import { startWorkflow } from '../engine/runs/start.js';
import type { StepInfo, WorkflowStatus } from '../control/listing/status.js';
import { checkStepConfig, type StepConfig } from '../engine/runs/step.js';
import type { SerializationOptions } from '../control/runs/storable.js';
import { closeStream, readStream, readStreamOffset, writeStream } from '../engine/messaging/streams.js';
import type { PollingOptions, TimeLimit } from '../control/runs/time-limit.js';
import { any, race, waitAll, waitFirst, type WaitOptions, waitPromises, type WaitResult } from '../engine/runs/wait.js';
import { migrateDatabase } from '../engine/migrate.js';
import { forkFromFailure, forkWorkflow, forkWorkflows, rewindWorkflow } from './management.js';
import {
  type ApplySchedule,
  applySchedules,
  backfillSchedule,
  createSchedule,
  type CreateScheduleOptions,
  type SchedulerConfig,
  SchedulerMode,
  triggerSchedule,
} from './schedules.js';
import { queueOf, setDefaultQueueOwner, type WorkflowQueue } from './workflow-queue.js';
import { Associations, type ExternalRegistration, type FunctionInfo, type PluginKey } from './associations.js';
import { Functions, type Host, isStandardContext, type MethodDecorator } from './functions.js';
import type {
  DBOSContextOptions,
  DBOSLifecycleCallback,
  DBOSMethodMiddlewareInstaller,
  InvokeFunctionsAsync,
  InvokeFunctionsAsyncInst,
  ShutdownOptions,
} from './types.js';

/** Settings that only tests have: clocks that are moved by hand. */
export type TestSettings = Pick<EngineOptions, 'clock' | 'databaseNow'>;

/** A call of a debouncer. */
type DebounceCall = Pick<DebounceRequest, 'key' | 'periodMs' | 'timeoutMs' | 'applicationName' | 'params' | 'args'>;

const TIMEOUT_MAX_MS = 2_147_483_647;

export class DBOSInstance implements Host {
  readonly registry: Registry;
  readonly #functions = new Functions(this, (object) => this.#instanceNames.get(object as object));
  readonly #associations: Associations;
  readonly #instanceNames = new WeakMap<object, string>();
  readonly #lifecycle = new Set<DBOSLifecycleCallback>();
  readonly #middleware: DBOSMethodMiddlewareInstaller[] = [];
  readonly #recipes: SerializationRecipe<unknown, JSONValue>[] = [];
  readonly #testSettings: TestSettings;
  #config: DBOSConfig | undefined;
  #engine: Engine | undefined;
  #adminServer: AdminServer | undefined;
  #areReceiversActive = false;
  #launching: Promise<void> | undefined;
  #shuttingDown: Promise<void> | undefined;

  constructor(testSettings: TestSettings = {}, registry = new Registry()) {
    this.registry = registry;
    this.#associations = new Associations(registry, this.#functions);
    this.#testSettings = testSettings;
  }

  // ── Lifecycle ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** Sets the configuration; before `launch`. */
  setConfig(config: DBOSConfig): void {
    if (this.#engine || this.#launching)
      throw new DBOSAlreadyLaunchedError('Cannot call DBOS.setConfig after DBOS.launch()');
    this.#config = config;
  }

  isInitialized(): boolean {
    return this.#engine !== undefined;
  }

  /** Opens the system database, recovers what earlier processes left, and begins to run workflows. */
  async launch(): Promise<void> {
    if (this.#shuttingDown)
      throw new DBOSAlreadyLaunchedError('DBOS is shutting down. Await DBOS.shutdown() before launching again.');
    if (this.#engine) return;
    this.#launching ??= this.#launch(stackHere('launch')).finally(() => (this.#launching = undefined));
    await this.#launching;
  }

  async #launch(stack: string): Promise<void> {
    const config = resolveConfig(this.#config);
    for (const registration of this.registry.registrations) registration.interceptors.length = 0;
    for (const installer of this.#middleware) {
      for (const registration of this.registry.registrations) {
        installer.installMiddleware(this.#associations.viewOf(registration));
      }
    }
    const initialized: DBOSLifecycleCallback[] = [];
    try {
      this.registry.freeze(stack);
      for (const instance of this.registry.instances)
        await (instance as { initialize?(): Promise<void> }).initialize?.();
      this.#engine = await Engine.launch({
        config,
        registry: this.registry,
        codec: this.#newCodec(config.serializer),
        ...this.#testSettings,
      });
      for (const callback of this.#lifecycle) {
        // Also the one that fails: it may have opened something before.
        initialized.push(callback);
        await callback.initialize?.();
      }
      this.logRegisteredEndpoints();
      this.#areReceiversActive = true;
      if (config.runAdminServer) await this.#startAdminServer(config);
    } catch (error) {
      await this.#destroy(initialized);
      await this.#engine?.shutdown(0);
      this.#engine = undefined;
      this.registry.thaw();
      throw error;
    }
  }

  async #startAdminServer(config: EngineConfig): Promise<void> {
    const { adminHost: host, adminPort: port, adminToken: token, adminOpen: isOpen, logger } = config;
    const options = { host, port, logger, clock: this.operator.clock };
    this.#adminServer = await AdminServer.start(createAdmin({ source: this, token, isOpen }), options);
  }

  #newCodec(serializer: DBOSConfig['serializer']): Codec {
    const codec = new Codec(serializer);
    for (const recipe of this.#recipes) codec.registerRecipe(recipe);
    return codec;
  }

  /**
   * Stops. Running workflows are waited for up to `workflowCompletionTimeoutMS` (not at all unless given) and then
   * handed back, to be continued by another process or the next launch.
   */
  async shutdown(options: ShutdownOptions = {}): Promise<void> {
    const timeoutMs = options.workflowCompletionTimeoutMS ?? 0;
    if (!(Number.isFinite(timeoutMs) && timeoutMs >= 0 && timeoutMs <= TIMEOUT_MAX_MS)) {
      throw new DBOSInvalidArgumentError(
        `Invalid workflowCompletionTimeoutMS ${timeoutMs}: it must be between 0 and ${TIMEOUT_MAX_MS}.`,
        'options.workflowCompletionTimeoutMS',
      );
    }
    this.#shuttingDown ??= this.#shutdown(timeoutMs, options).finally(() => (this.#shuttingDown = undefined));
    await this.#shuttingDown;
  }

  async #shutdown(timeoutMs: number, { deregister = false }: ShutdownOptions): Promise<void> {
    await this.#launching?.catch(() => {
      // Whoever launched has the error.
    });
    const engine = this.#engine;
    // While the plugins end, they may still hand over what they have.
    if (engine) await this.#deactivate();
    this.#engine = undefined;
    await this.#adminServer?.close();
    this.#adminServer = undefined;
    await engine?.shutdown(timeoutMs);
    this.registry.thaw();
    if (deregister) {
      this.registry.clear();
      this.#lifecycle.clear();
      this.#middleware.length = 0;
      this.#recipes.length = 0;
    }
  }

  async #destroy(callbacks: Iterable<DBOSLifecycleCallback>): Promise<void> {
    for (const callback of callbacks) {
      try {
        await callback.destroy?.();
      } catch (error) {
        this.logger.error(error);
      }
    }
  }

  /** Shuts down in an orderly way when the process is told to end. Returns a function that undoes this. */
  shutdownOnSignals(
    options: { readonly signals?: readonly NodeJS.Signals[]; readonly workflowCompletionTimeoutMS?: number } = {},
  ): () => void {
    const { signals = ['SIGTERM', 'SIGINT'], workflowCompletionTimeoutMS = 10_000 } = options;
    const onSignal = (signal: NodeJS.Signals): void => {
      release();
      void this.shutdown({ workflowCompletionTimeoutMS }).finally(() => process.kill(process.pid, signal));
    };
    const release = (): void => {
      for (const signal of signals) process.removeListener(signal, onSignal);
    };
    for (const signal of signals) process.on(signal, onSignal);
    return release;
  }

  /** Creates the system database if it is missing, migrates it, and grants a role what an application needs. */
  migrate(systemDatabaseUrl: string, options: { schemaName?: string; applicationRole?: string } = {}): Promise<void> {
    return migrateDatabase(systemDatabaseUrl, options, this.logger);
  }

  registerLifecycleCallback(callback: DBOSLifecycleCallback): void {
    this.#lifecycle.add(callback);
  }

  /** Calls `destroy` of the lifecycle callbacks, once: nothing comes in from outside any more. Workflows go on. */
  deactivateEventReceivers(): Promise<void> {
    return this.#deactivate();
  }

  async #deactivate(): Promise<void> {
    if (!this.#areReceiversActive) return;
    this.#areReceiversActive = false;
    await this.#destroy(this.#lifecycle);
  }

  /** The HTTP server of the admin interface; undefined if it is not wanted, or its port was in use. */
  get adminServer(): Server | undefined {
    return this.#adminServer?.http;
  }

  /** For Everstep's own HTTP interface. */
  get operator(): Engine {
    if (!this.#engine) throw new DBOSExecutorNotInitializedError();
    return this.#engine;
  }

  /** Lets every plugin log what it serves. */
  logRegisteredEndpoints(): void {
    for (const callback of this.#lifecycle) callback.logRegisteredEndpoints?.();
  }

  /** The object in which a plugin keeps what it has to say of a class. */
  associateClassWithInfo(external: PluginKey, cls: AnyConstructor | string): object {
    return this.#associations.withClass(external, cls);
  }

  /** The object in which a plugin keeps what it has to say of a function. */
  associateFunctionWithInfo<This, Args extends unknown[], Return>(
    external: PluginKey,
    func: (this: This, ...args: Args) => Promise<Return>,
    target: FunctionName,
  ): FunctionInfo {
    return this.#associations.withFunction(external, func as unknown as UserFunction, target);
  }

  /** The same of a parameter, by its name or number; undefined if there is none. */
  associateParamWithInfo<This, Args extends unknown[], Return>(
    external: PluginKey,
    func: ((this: This, ...args: Args) => Promise<Return>) | undefined,
    target: FunctionName & { readonly param: number | string },
  ): object | undefined {
    return this.#associations.withParameter(external, func as unknown as UserFunction | undefined, target);
  }

  /** All that a plugin has said, a function each: of all functions, of a class, or of one. */
  getAssociatedInfo(external: PluginKey, cls?: object | string, funcName?: string): readonly ExternalRegistration[] {
    return this.#associations.find(external, cls, funcName);
  }

  /** Keeps a value for a plugin, unless one of a later time or a greater number is there. Gives what is stored then. */
  upsertEventDispatchState(state: DBOSExternalState): Promise<DBOSExternalState> {
    const engine = this.engineFor('upsertEventDispatchState');
    return engine.retrying(() => saveEventDispatchState(engine.store.database, state));
  }

  /** The value that a plugin keeps under these names; undefined if there is none. */
  getEventDispatchState(service: string, workflowFnName: string, key: string): Promise<DBOSExternalState | undefined> {
    const engine = this.engineFor('getEventDispatchState');
    return engine.retrying(() => getEventDispatchState(engine.store.database, { service, workflowFnName, key }));
  }

  /** The launched engine: the one of the workflow around, if there is one. */
  engineFor(reason: string): Engine {
    const engine = currentContext()?.run?.engine ?? this.#engine;
    if (engine) return engine;
    throw new DBOSExecutorNotInitializedError(`\`DBOS.launch()\` must be called before running ${reason}.`);
  }

  // ── Registration ───────────────────────────────────────────────────────────────────────────────────────────────

  /** Makes a workflow of an async function. Call the returned function instead of it. */
  registerWorkflow<This, Args extends unknown[], Return>(
    func: (this: This, ...args: Args) => Promise<Return>,
    config: FunctionName & WorkflowConfig = {},
  ): (this: This, ...args: Args) => Promise<Return> {
    // The wrapper takes and gives what the function does.
    return this.#functions.registerWorkflow(func as unknown as UserFunction, config) as unknown as typeof func;
  }

  /** Makes a step of an async function. Call the returned function instead of it. */
  registerStep<This, Args extends unknown[], Return>(
    func: (this: This, ...args: Args) => Promise<Return>,
    config: FunctionName & StepConfig = {},
  ): (this: This, ...args: Args) => Promise<Return> {
    return this.#functions.registerStep(func as unknown as UserFunction, config) as unknown as typeof func;
  }

  /** Runs a function as a step of the workflow around it. */
  runStep<Return>(func: () => Promise<Return>, config: StepConfig = {}): Promise<Return> {
    checkStepConfig(config);
    return this.#functions.callStep(config.name ?? func.name, config, func);
  }

  /** Decorator: makes a workflow of a static or instance method. */
  workflow(config: WorkflowConfig = {}): MethodDecorator {
    return this.#functions.decorate((fn, place) => this.#functions.registerWorkflow(fn, config, place), config.name);
  }

  /** Decorator: makes a step of a static or instance method. */
  step(config: StepConfig = {}): MethodDecorator {
    return this.#functions.decorate((fn, place) => this.#functions.registerStep(fn, config, place), config.name);
  }

  /** Class decorator: gives the class the name under which its workflows are stored. */
  className(name: string): (target: AnyConstructor, context?: unknown) => void {
    return (target) => this.registry.setAlias(target, name);
  }

  /** Method decorator: only users with one of these roles may call the function. */
  requiredRole(anyOf: string[]): MethodDecorator {
    const decorator = (target: unknown, contextOrKey: unknown, descriptor?: PropertyDescriptor): void => {
      const fn: unknown = isStandardContext(contextOrKey) ? target : descriptor?.value;
      const registration = this.registry.findByFunction(fn);
      if (!registration) {
        throw new DBOSConflictingRegistrationError('Put @DBOS.requiredRole above @DBOS.workflow or @DBOS.step.');
      }
      registration.requiredRoles = anyOf;
    };
    return decorator as unknown as MethodDecorator;
  }

  /** Class decorator: the roles for all functions of the class that do not name their own. */
  defaultRequiredRole(anyOf: string[]): (target: AnyConstructor, context?: unknown) => void {
    return (target) => {
      this.registry.classOf(target).defaultRoles = anyOf;
    };
  }

  /** Installs interceptors on all functions at launch. */
  registerMiddlewareInstaller(installer: DBOSMethodMiddlewareInstaller): void {
    this.registry.refuseAfterLaunch();
    this.#middleware.push(installer);
  }

  /** Teaches the serializer a type of the application's. */
  registerSerialization<T, S extends JSONValue>(recipe: SerializationRecipe<T, S>): void {
    if (this.#engine)
      throw new DBOSAlreadyLaunchedError('DBOS.registerSerialization must be called before DBOS.launch()');
    this.#recipes.push(recipe);
  }

  /** For `ConfiguredInstance`. */
  registerInstance(instance: object, name: string): void {
    this.registry.addInstance(instance, this.registry.classNameOf(instance.constructor as AnyConstructor), name);
    this.#instanceNames.set(instance, name);
    if (this.#engine)
      this.logger.warn(`ConfiguredInstance "${name}" was created after DBOS.launch(); it was not there for recovery.`);
  }

  // ── Starting workflows ─────────────────────────────────────────────────────────────────────────────────────────

  /** Starts or enqueues a workflow. Resolves to its handle when the workflow is durably recorded. */
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
    const start =
      (fn: unknown, name: string, receiver: unknown) =>
      (...args: unknown[]) => {
        const registration = this.registry.findByFunction(fn);
        if (registration?.kind === 'step' || registration?.kind === 'transaction') {
          throw new DBOSInvalidWorkflowTransitionError(
            `Attempt to start or enqueue ${registration.kind} "${name}". Only a workflow can be started.`,
          );
        }
        const workflow = this.registry.workflowOf(fn, name);
        return startWorkflow(
          this.#functions.engineOf(workflow),
          this.#functions.requestFor(workflow, receiver, args, params),
        );
      };
    if (typeof target === 'function' && this.registry.findByFunction(target)) {
      return start(target, target.name, undefined);
    }
    const callable = typeof target === 'function' ? target : () => {};
    return new Proxy(callable, {
      get: (_, property) => {
        const fn = (target as Record<PropertyKey, unknown>)[property];
        if (this.registry.findByFunction(fn)) return start(fn, String(property), target);
        throw new DBOSNotRegisteredError(
          String(property),
          `${String(property)} is not a registered DBOS workflow function`,
        );
      },
      apply: (_, __, args: unknown[]) =>
        start(target, (target as { name?: string }).name ?? 'The function', undefined)(...args),
    });
  }

  /**
   * Enqueues many workflows of one function in one commit: all of them, or none if one is refused. What a start says of
   * itself comes before `params`, which hold for all. Resolves to their handles, in order.
   */
  startWorkflows<Args extends unknown[], Return>(
    target: (...args: Args) => Promise<Return>,
    starts: readonly BulkStart<Args>[],
    params: StartWorkflowParams = {},
  ): Promise<WorkflowHandle<Return>[]> {
    const workflow = this.registry.workflowOf(target, target.name);
    const requests = starts.map(({ args, ...own }) => {
      const enqueueOptions = { ...params.enqueueOptions, ...own.enqueueOptions };
      return this.#functions.requestFor(workflow, undefined, args, { ...params, ...own, enqueueOptions });
    });
    return startWorkflows<Return>(this.#functions.engineOf(workflow), requests);
  }

  /** Enqueues a workflow by the name of its function, which need not be registered here. */
  enqueueWorkflowWithOptions<T = unknown>(
    options: EnqueueWorkflowOptions,
    ...args: unknown[]
  ): Promise<WorkflowHandle<T>> {
    return enqueueByName<T>(this.engineFor('enqueueWorkflowWithOptions'), options, args);
  }

  /** The same, with arguments in the form that every language reads. */
  enqueueWorkflowWithOptionsPortable<T = unknown>(
    options: EnqueueWorkflowOptions,
    positionalArgs: unknown[],
    namedArgs?: Record<string, unknown>,
  ): Promise<WorkflowHandle<T>> {
    const portable = { ...options, serializationType: 'portable' } as const;
    return enqueueByName<T>(
      this.engineFor('enqueueWorkflowWithOptionsPortable'),
      portable,
      positionalArgs,
      namedArgs ?? {},
    );
  }

  /** For `Debouncer`. */
  debounceWorkflow<R>(
    target: UserFunction,
    { applicationName, params, args, ...limits }: DebounceCall,
  ): Promise<WorkflowHandle<R>> {
    const workflow = this.registry.workflowOf(target, target.name);
    const engine = this.#functions.engineOf(workflow);
    const request = this.#functions.requestFor(workflow, undefined, args, params);
    return debounce<R>(engine, { ...request, ...limits, applicationName });
  }

  /** A handle of a workflow that was started before, anywhere. */
  retrieveWorkflow<T = unknown>(workflowID: string): WorkflowHandle<Awaited<T>> {
    const context = currentContext();
    if (context?.step !== undefined || context?.transactionID !== undefined) {
      throw new DBOSInvalidWorkflowTransitionError('Invalid call to `retrieveWorkflow` inside a step or transaction');
    }
    return this.engineFor('retrieveWorkflow').handleOf<Awaited<T>>(workflowID);
  }

  /** The first workflow that is started in the callback gets this ID. */
  withNextWorkflowID<R>(workflowID: string, callback: () => Promise<R>): Promise<R> {
    filledName.read(workflowID, 'workflowID');
    return this.#within({ nextWorkflowID: { workflowID } }, callback);
  }

  /** Workflows started in the callback run for this user, who has these roles. */
  withAuthedContext<R>(authedUser: string, authedRoles: string[], callback: () => Promise<R>): Promise<R> {
    return this.#within({ authenticatedUser: authedUser, authenticatedRoles: authedRoles }, callback);
  }

  /** Names the caller; kept for compatibility, the name has no effect. */
  withNamedContext<R>(_callerName: string, callback: () => Promise<R>): Promise<R> {
    return this.#within({}, callback);
  }

  /** Workflows started in the callback are enqueued. */
  withWorkflowQueue<R>(queueName: string, callback: () => Promise<R>): Promise<R> {
    return this.#within({ queueName }, callback);
  }

  /** Workflows started in the callback have this timeout; null detaches them from the deadline of their parent. */
  withWorkflowTimeout<R>(timeoutMS: number | null, callback: () => Promise<R>): Promise<R> {
    return this.#within({ timeoutMs: timeoutMS }, callback);
  }

  /** Sets several things at once for the callback. */
  runWithContext<R>(options: DBOSContextOptions, callback: () => Promise<R>): Promise<R> {
    const { idAssignedForNextWorkflow, queueAssignedForWorkflows, workflowTimeoutMS, serializationType, ...rest } =
      options;
    return this.#within(
      {
        ...rest,
        ...(idAssignedForNextWorkflow !== undefined && { nextWorkflowID: { workflowID: idAssignedForNextWorkflow } }),
        ...(queueAssignedForWorkflows !== undefined && { queueName: queueAssignedForWorkflows }),
        ...(workflowTimeoutMS !== undefined && { timeoutMs: workflowTimeoutMS }),
        ...(serializationType !== undefined && { serialization: serializationType }),
      },
      callback,
    );
  }

  #within<R>(settings: Partial<Context>, callback: () => Promise<R>): Promise<R> {
    return inContext({ ...currentContext(), engine: this.engineFor('workflows'), ...settings }, callback);
  }

  // ── Results, waiting, state ────────────────────────────────────────────────────────────────────────────────────

  getWorkflowStatus(workflowID: string): Promise<WorkflowStatus | null> {
    return getWorkflowStatus(this.engineFor('getWorkflowStatus'), workflowID);
  }

  /** The result of a workflow, or null when the given time is up. A number is a timeout in seconds. */
  getResult<T>(workflowID: string, options?: number | GetResultOptions): Promise<T | null> {
    return getResult(this.engineFor('getResult'), workflowID, options) as Promise<T | null>;
  }

  /** Waits for the first of the workflows to end. */
  waitFirst(handles: WorkflowHandle<unknown>[], options?: PollingOptions): Promise<WorkflowHandle<unknown>> {
    return waitFirst(this.engineFor('waitFirst'), handles, options);
  }

  /** Waits for all the workflows to end. */
  waitAll<R>(handles: WorkflowHandle<R>[], options?: PollingOptions): Promise<WorkflowHandle<R>[]> {
    return waitAll(this.engineFor('waitAll'), handles, options);
  }

  /** Waits for promises and records which have settled, so that a recovered workflow takes the same way. */
  wait<P extends Promise<unknown>>(promises: readonly P[], options?: WaitOptions): Promise<WaitResult<P>> {
    return waitPromises(this.engineFor('wait'), promises, options);
  }

  /** `Promise.race` with the winner recorded. */
  race<T extends readonly unknown[] | []>(promises: T): Promise<Awaited<T[number]>> {
    return race<T[number]>(this.engineFor('race'), promises);
  }

  /** `Promise.any` with the winner recorded. */
  any<T extends readonly unknown[] | []>(promises: T): Promise<Awaited<T[number]>> {
    return any<T[number]>(this.engineFor('any'), promises);
  }

  /** `Promise.all`; steps started in a fixed order need no record. */
  all<T extends readonly unknown[] | []>(promises: T): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
    return Promise.all(promises);
  }

  /** `Promise.allSettled`; steps started in a fixed order need no record. */
  allSettled<T extends readonly unknown[] | []>(
    promises: T,
  ): Promise<{ -readonly [K in keyof T]: PromiseSettledResult<Awaited<T[K]>> }> {
    return Promise.allSettled(promises);
  }

  /** The steps of a workflow in the order of their numbers; undefined if there is no such workflow. */
  listWorkflowSteps(workflowID: string, options: StepsQuery = {}): Promise<StepInfo[] | undefined> {
    return this.#find('listWorkflowSteps', (operator) => findWorkflowSteps(operator, workflowID, options), readSteps);
  }

  /** The workflows that match, in the order of their creation. */
  listWorkflows(input: GetWorkflowsInput = {}): Promise<WorkflowStatus[]> {
    return this.#find('listWorkflows', (operator) => findWorkflowRecords(operator, input), readWorkflows);
  }

  /** The workflows that match and are in a queue: enqueued, delayed or running. Without their outcomes. */
  listQueuedWorkflows(input: GetWorkflowsInput = {}): Promise<WorkflowStatus[]> {
    return this.#find('listQueuedWorkflows', (operator) => findQueuedRecords(operator, input), readWorkflows);
  }

  /** A page of the workflows that match, and where the next one begins. */
  listWorkflowPage(input: WorkflowPageInput = {}): Promise<WorkflowPage> {
    return this.#find('listWorkflowPage', (operator) => findWorkflowPage(operator, input), readPage);
  }

  /** All workflows that match, one after the other, read page by page. */
  iterateWorkflows(input: WorkflowPageInput = {}): AsyncGenerator<WorkflowStatus, void, undefined> {
    return eachOf(input, (page) => this.listWorkflowPage(page));
  }

  /** How many workflows match. */
  countWorkflows(filters: WorkflowFilters = {}): Promise<number> {
    return this.#look('countWorkflows', (operator) => countWorkflows(operator, filters));
  }

  /** Counts, and the longest waits and times, of the workflows that match, by group. */
  getWorkflowAggregates(input: GetWorkflowAggregatesInput): Promise<WorkflowAggregate[]> {
    return this.#look('getWorkflowAggregates', (operator) => getWorkflowAggregates(operator, input));
  }

  /** Counts, and the longest times, of the steps that match, by group. */
  getStepAggregates(input: GetStepAggregatesInput): Promise<StepAggregate[]> {
    return this.#look('getStepAggregates', (operator) => getStepAggregates(operator, input));
  }

  /** How many workflows were created and steps completed, by name, from a time on and before another. */
  getMetrics(startTime: string, endTime: string, applicationNames?: string[]): Promise<Metric[]> {
    return this.#look('getMetrics', (operator) => getMetrics(operator, { startTime, endTime }, applicationNames));
  }

  /** Asks the control room; recorded in workflow code. */
  #look<R>(verb: string, ask: (operator: Operator) => Promise<R>): Promise<R> {
    const engine = this.engineFor(verb);
    return operation({ name: `DBOS.${verb}`, isEffect: false }, () => ask(engine));
  }

  /** The same for what is stored. That is what is recorded: any value has that form, and is read afterwards. */
  async #find<Stored, R>(
    verb: string,
    find: (operator: Operator) => Promise<Stored>,
    read: (operator: Operator, stored: Stored) => Promise<R>,
  ): Promise<R> {
    const engine = this.engineFor(verb);
    const named = { name: `DBOS.${verb}`, isEffect: false, format: 'portable' } as const;
    return read(engine, await operation(named, () => find(engine)));
  }

  /** Lets the control room change something; recorded in workflow code. */
  async #change(verb: string, change: (engine: Engine) => Promise<void>): Promise<void> {
    const engine = this.engineFor(verb);
    await operation({ name: `DBOS.${verb}`, isEffect: true }, async () => {
      await change(engine);
      return null;
    });
  }

  // ── Management ─────────────────────────────────────────────────────────────────────────────────────────────────

  cancelWorkflow(workflowID: string, options: CancelOptions = {}): Promise<void> {
    return this.cancelWorkflows([workflowID], options);
  }

  /** Cancels workflows that have not ended. They stop at their next operation; a blocked wait is woken at once. */
  cancelWorkflows(workflowIDs: string[], options: CancelOptions = {}): Promise<void> {
    return this.#change('cancelWorkflow', (operator) => cancelWorkflows(operator, workflowIDs, options));
  }

  async resumeWorkflow<T>(workflowID: string, options: ResumeOptions = {}): Promise<WorkflowHandle<Awaited<T>>> {
    await this.resumeWorkflows([workflowID], options);
    return this.engineFor('resumeWorkflow').handleOf<Awaited<T>>(workflowID);
  }

  /** Lets workflows that were cancelled, dead-lettered or left behind go on from their last checkpoint. */
  async resumeWorkflows<T>(workflowIDs: string[], options: ResumeOptions = {}): Promise<WorkflowHandle<Awaited<T>>[]> {
    const engine = this.engineFor('resumeWorkflow');
    await this.#change('resumeWorkflow', (operator) => resumeWorkflows(operator, workflowIDs, options));
    return workflowIDs.map((workflowID) => engine.handleOf<Awaited<T>>(workflowID));
  }

  deleteWorkflow(workflowID: string, deleteChildren = false): Promise<void> {
    return this.deleteWorkflows([workflowID], deleteChildren);
  }

  /** Deletes workflows and all that belongs to them, in whatever state they are. Those that run end with an error. */
  deleteWorkflows(workflowIDs: string[], deleteChildren = false): Promise<void> {
    return this.#change('deleteWorkflow', (engine) =>
      deleteWorkflows(engine, workflowIDs, {
        deleteChildren,
        deleteCheckpoints: (deletedIDs) => engine.transactions.forgetDeleted(deletedIDs),
      }),
    );
  }

  /** Starts a copy of a workflow from one of its steps. The steps before it are not executed again. */
  forkWorkflow<T>(
    workflowID: string,
    startStep: number,
    options: ForkOptions = {},
  ): Promise<WorkflowHandle<Awaited<T>>> {
    return forkWorkflow(this.engineFor('forkWorkflow'), { workflowID, startStep }, options);
  }

  /** Forks many workflows in one commit: all of them, or none. Resolves to the handles of the forks, in order. */
  forkWorkflows<T>(
    requests: readonly ForkRequest[],
    settings: ForkSettings = {},
  ): Promise<WorkflowHandle<Awaited<T>>[]> {
    return forkWorkflows(this.engineFor('forkWorkflows'), requests, settings);
  }

  /** Forks workflows from the step in which each has failed, or from another one that is described. */
  forkFromFailure<T>(
    workflowIDs: readonly string[],
    options: ForkFromFailureOptions,
  ): Promise<WorkflowHandle<Awaited<T>>[]> {
    return forkFromFailure(this.engineFor('forkFromFailure'), workflowIDs, options);
  }

  /** Lets a workflow that has ended run again from one of its steps, under its own ID. */
  rewindWorkflow<T>(workflowID: string, options: RewindOptions = {}): Promise<WorkflowHandle<Awaited<T>>> {
    return rewindWorkflow(this.engineFor('rewindWorkflow'), workflowID, options);
  }

  /** Deletes old workflows that have ended, in small commits beside the work that goes on. */
  garbageCollect(options: GarbageCollectOptions): Promise<GarbageCollected> {
    const engine = this.engineFor('garbageCollect');
    return operation({ name: 'DBOS.garbageCollect', isEffect: true }, () => garbageCollect(engine, options));
  }

  /** Cancels all workflows that were created at this time or before and have not ended. Resolves to their number. */
  globalTimeout(cutoffEpochTimestampMs: number): Promise<number> {
    const engine = this.engineFor('globalTimeout');
    return operation({ name: 'DBOS.globalTimeout', isEffect: true }, () =>
      globalTimeout(engine, cutoffEpochTimestampMs),
    );
  }

  /** Gives all that belongs to an application another name, which is then the one to configure. */
  renameApplication(
    oldName: string | undefined,
    newName: string,
    options: RenameApplicationOptions = {},
  ): Promise<ApplicationRowCounts> {
    const engine = this.engineFor('renameApplication');
    return operation({ name: 'DBOS.renameApplication', isEffect: true }, () =>
      renameApplication(engine, { oldName, newName }, options),
    );
  }

  /** Delays a workflow that waits in a queue or for its time: by seconds from now on, or until a time. */
  setWorkflowDelay(workflowID: string, options: number | SetWorkflowDelayOptions): Promise<void> {
    return this.#change('setWorkflowDelay', (operator) => setWorkflowDelay(operator, workflowID, options));
  }

  /** Gives a workflow another priority; lower numbers come first. */
  setWorkflowPriority(workflowID: string, priority: number): Promise<void> {
    return this.#change('setWorkflowPriority', (operator) => setWorkflowPriority(operator, workflowID, priority));
  }

  /** Changes the attributes that are named and leaves the others; null takes one out. */
  updateWorkflowAttributes(workflowID: string, attributes: Record<string, unknown>): Promise<void> {
    return this.#change('updateWorkflowAttributes', (operator) =>
      updateWorkflowAttributes(operator, workflowID, attributes),
    );
  }

  /** Puts the attributes in place of all that the workflow has; null leaves it without any. */
  setWorkflowAttributes(workflowID: string, attributes: Record<string, unknown> | null): Promise<void> {
    return this.#change('setWorkflowAttributes', (operator) => setWorkflowAttributes(operator, workflowID, attributes));
  }

  /** The workflows that match, whole: with steps, events, streams and messages, and with their children if wanted. */
  exportWorkflows(input: ExportInput = {}): AsyncGenerator<ExportedWorkflow, void, undefined> {
    return exportWorkflows(this.#outsideWorkflows('exportWorkflows'), input);
  }

  /** Puts exported workflows in: objects, or the pieces of a text. Each is there whole or not at all. */
  importWorkflows(source: ExportSource, options: ImportOptions = {}): Promise<ImportResult> {
    return importWorkflows(this.#outsideWorkflows('importWorkflows'), source, options);
  }

  /** For what can be too much for a record. */
  #outsideWorkflows(verb: string): Operator {
    if (!isWorkflowCode(currentContext())) return this.engineFor(verb);
    throw new DBOSInvalidWorkflowTransitionError(`Invalid call to \`${verb}\` in workflow code. Call it in a step.`);
  }

  /** The indexes that you can have for filters that you often use, and whether they are there. */
  listOptionalIndexes(): Promise<OptionalIndexInfo[]> {
    return listOptionalIndexes(this.engineFor('listOptionalIndexes'));
  }

  /** Builds an index for a filter. On Postgres work goes on meanwhile; on SQLite writers wait. */
  createOptionalIndex(index: OptionalIndex): Promise<void> {
    return createOptionalIndex(this.engineFor('createOptionalIndex'), index);
  }

  dropOptionalIndex(index: OptionalIndex): Promise<void> {
    return dropOptionalIndex(this.engineFor('dropOptionalIndex'), index);
  }

  /** Says why a workflow is in the state that it is in: above all, why it has not started. */
  explainWorkflow(workflowID: string): Promise<WorkflowExplanation> {
    return explainWorkflow(this.engineFor('explainWorkflow'), workflowID);
  }

  // ── Queues ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Keeps a queue in the database. Without `onConflict`, only the latest version changes one that is there. */
  async registerQueue(name: string, options: RegisterQueueOptions = {}): Promise<WorkflowQueue> {
    const { onConflict = 'update_if_latest_version', ...parameters } = options;
    const engine = this.engineFor('registerQueue');
    const { applicationName, applicationVersion } = engine;
    const registration = { name, parameters, onConflict, applicationName, applicationVersion };
    return queueOf(engine, await registerQueue(engine, registration));
  }

  /** A queue that is kept in the database; null if there is none of this name. */
  async retrieveQueue(name: string): Promise<WorkflowQueue | null> {
    const engine = this.engineFor('retrieveQueue');
    const record = await findQueueRecord(engine, name);
    return record && queueOf(engine, record);
  }

  /** Removes a queue from the database. Workflows in it wait until it is registered again. */
  deleteQueue(name: string): Promise<void> {
    return deleteQueue(this.engineFor('deleteQueue'), name);
  }

  /** The queues of the database that this application, or those that are named, may use. */
  async listQueues(applicationName?: string | string[]): Promise<WorkflowQueue[]> {
    const engine = this.engineFor('listQueues');
    return (await listQueueRecords(engine, applicationName)).map((record) => queueOf(engine, record));
  }

  /** No process takes workflows from the queue until it is resumed. Those that run go on. */
  pauseQueue(name: string): Promise<void> {
    return pauseQueue(this.engineFor('pauseQueue'), name);
  }

  resumeQueue(name: string): Promise<void> {
    return resumeQueue(this.engineFor('resumeQueue'), name);
  }

  /** How many workflows wait, are delayed and run, and how long the oldest waits: by queue, or by partition. */
  getQueueStats(options: QueueStatsQuery = {}): Promise<QueueStats[]> {
    return getQueueStats(this.engineFor('getQueueStats'), options);
  }

  /** For `WorkflowQueue`. */
  registerMemoryQueue(record: QueueRecord): void {
    this.registry.addQueue(record);
    this.#engine?.queueing.lookAround();
  }

  // ── Messages, events, streams ──────────────────────────────────────────────────────────────────────────────────

  /** Sends a message to a workflow. In workflow code it is a step: the message is sent once, whatever happens. */
  // eslint-disable-next-line max-params -- The signature is the one of DBOS.
  send<T>(
    destinationID: string,
    message: T,
    topic?: string,
    idempotencyKey?: string,
    options?: SerializationOptions,
  ): Promise<void> {
    return send(this.engineFor('send'), { destinationID, message, topic, idempotencyKey, ...options });
  }

  /** Sends many messages in one commit: all, or none if a destination does not exist. */
  sendBulk<T>(messages: readonly BulkMessage<T>[]): Promise<void> {
    return sendBulk(this.engineFor('sendBulk'), messages);
  }

  /** Receives the oldest message of a topic, in workflow code; null when the time is up: 60 seconds unless given. */
  recv<T>(topic?: string, options?: number | RecvOptions): Promise<T | null> {
    return recv(this.engineFor('recv'), topic, options) as Promise<T | null>;
  }

  /** Publishes a value under a key, in workflow code. Setting the key again replaces the value. */
  setEvent<T>(key: string, value: T, options?: SerializationOptions): Promise<void> {
    return setEvent(key, value, options);
  }

  /** The value of an event of a workflow, waiting for it; null when the time is up: 60 seconds unless given. */
  getEvent<T>(workflowID: string, key: string, options?: number | GetEventOptions): Promise<T | null> {
    return getEvent(this.engineFor('getEvent'), { workflowID, key }, options) as Promise<T | null>;
  }

  /** Appends a value to a stream of the workflow around, from its code or from a step. */
  writeStream<T>(key: string, value: T, options?: SerializationOptions): Promise<void> {
    return writeStream(key, value, options);
  }

  /** Ends a stream: its readers stop. */
  closeStream(key: string): Promise<void> {
    return closeStream(key);
  }

  /** Reads a stream while it is written, to its end: until it is closed or its workflow has ended. */
  readStream<T>(workflowID: string, key: string, options?: ReadStreamOptions): AsyncGenerator<T, void, unknown> {
    const engine = this.engineFor('readStream');
    return readStream(engine, { workflowID, key }, options) as AsyncGenerator<T, void, unknown>;
  }

  /** The value at an offset of a stream, waiting for it. */
  readStreamOffset<T>(workflowID: string, key: string, offset: number, options?: ReadStreamOffsetOptions): Promise<T> {
    const engine = this.engineFor('readStreamOffset');
    return readStreamOffset(engine, { workflowID, key }, { ...options, offset }) as Promise<T>;
  }

  /**
   * Answers requests in workflow code, one after the other: until a handler says `stop`, or none has come for the time
   * given.
   */
  handleRequests<Requests extends Record<string, RequestFunction>>(
    handlers: RequestHandlers<Requests>,
    options?: TimeLimit,
  ): Promise<'stopped' | 'timeout'> {
    return handleRequests(handlers, options);
  }

  /** Asks a running workflow and gives its one answer, or throws its error. */
  request<F extends RequestFunction = (payload: unknown) => unknown>(
    workflowID: string,
    name: string,
    payload: Parameters<F>[0],
    options?: RequestOptions,
  ): Promise<Awaited<ReturnType<F>>> {
    const engine = this.engineFor('request');
    return request(engine, { workflowID, name, payload, ...options }) as Promise<Awaited<ReturnType<F>>>;
  }

  /** All events of a workflow, by their keys. */
  getAllEvents(workflowID: string): Promise<Record<string, unknown>> {
    return this.#look('getAllEvents', (operator) => getAllEvents(operator, workflowID));
  }

  /** All values of the streams of a workflow so far, by their keys. */
  getAllStreamEntries(workflowID: string): Promise<Record<string, unknown[]>> {
    return this.#look('getAllStreamEntries', (operator) => getAllStreamEntries(operator, workflowID));
  }

  /** All messages to a workflow, the oldest first, received or not. */
  getAllNotifications(workflowID: string): Promise<NotificationInfo[]> {
    return this.#look('getAllNotifications', (operator) => getAllNotifications(operator, workflowID));
  }

  // ── Schedules ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** Keeps a schedule in the database: the workflow is run whenever the cron expression is due. */
  createSchedule(options: CreateScheduleOptions): Promise<void> {
    return createSchedule(this.engineFor('createSchedule'), options);
  }

  listSchedules(filters: ScheduleFilters = {}): Promise<WorkflowSchedule[]> {
    return this.#look('listSchedules', (operator) => listSchedules(operator, filters));
  }

  getSchedule(name: string): Promise<WorkflowSchedule | null> {
    return this.#look('getSchedule', (operator) => getSchedule(operator, name));
  }

  /** Removes a schedule. What it has enqueued stays. */
  deleteSchedule(name: string): Promise<void> {
    return this.#change('deleteSchedule', (operator) => deleteSchedule(operator, name));
  }

  pauseSchedule(name: string): Promise<void> {
    return this.#change('pauseSchedule', (operator) => pauseSchedule(operator, name));
  }

  resumeSchedule(name: string): Promise<void> {
    return this.#change('resumeSchedule', (operator) => resumeSchedule(operator, name));
  }

  /** Changes what is given; null takes the time zone or the queue away. */
  updateSchedule(name: string, updates: ScheduleUpdate): Promise<void> {
    return this.#change('updateSchedule', (operator) => updateSchedule(operator, name, updates));
  }

  /** Creates or redefines several schedules, all or none. Their state stays. */
  applySchedules(schedules: ApplySchedule[]): Promise<void> {
    return applySchedules(this.engineFor('applySchedules'), schedules);
  }

  /** Runs the workflow of a schedule now. */
  triggerSchedule(name: string): Promise<WorkflowHandle<unknown>> {
    return triggerSchedule(this.engineFor('triggerSchedule'), name);
  }

  /** Runs the workflow of a schedule for all times between two dates at which it was due. */
  backfillSchedule(name: string, start: Date, end: Date): Promise<WorkflowHandle<unknown>[]> {
    return backfillSchedule(this.engineFor('backfillSchedule'), name, { start, end });
  }

  /** The next times at which a schedule is due: one of the database, by name, or a cron expression. */
  nextRuns(
    schedule: string | { readonly schedule: string; readonly cronTimezone?: string | null },
    count: number,
  ): Promise<Date[]> {
    return nextRuns(this.engineFor('nextRuns'), schedule, count);
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

  #addCodeSchedule(fn: unknown, { crontab, mode, queueName }: SchedulerConfig): void {
    this.registry.refuseAfterLaunch();
    const isMakingUp = mode === SchedulerMode.ExactlyOncePerInterval;
    this.registry.codeSchedules.add({ fn: fn as UserFunction, crontab, queueName, isMakingUp });
  }

  // ── Application versions ───────────────────────────────────────────────────────────────────────────────────────

  /** The versions of this application that were launched, the latest first. */
  listApplicationVersions(): Promise<VersionInfo[]> {
    return listApplicationVersions(this.engineFor('listApplicationVersions'));
  }

  getLatestApplicationVersion(): Promise<VersionInfo> {
    return getLatestApplicationVersion(this.engineFor('getLatestApplicationVersion'));
  }

  /** From now on workflows without a version, such as those of schedules, go to this one. */
  setLatestApplicationVersion(versionName: string, options: SetLatestVersionOptions = {}): Promise<void> {
    return setLatestApplicationVersion(this.engineFor('setLatestApplicationVersion'), versionName, options);
  }

  // ── Durable utilities ──────────────────────────────────────────────────────────────────────────────────────────

  /** Sleeps; in a workflow the end of the sleep is recorded and kept after a recovery. */
  sleepms(durationMS: number): Promise<void> {
    return durableSleep(this.engineFor('sleep'), durationMS);
  }

  /** The same as `sleepms`. */
  sleep(durationMS: number): Promise<void> {
    return this.sleepms(durationMS);
  }

  sleepSeconds(durationSec: number): Promise<void> {
    return this.sleepms(durationSec * 1000);
  }

  /** The time in epoch milliseconds, recorded in a workflow. */
  now(): Promise<number> {
    const clock = (currentContext()?.run?.engine ?? this.#engine)?.clock;
    return operation({ name: 'DBOS.now', isEffect: false }, async () => clock?.now() ?? Date.now());
  }

  /** A random UUID, recorded in a workflow. */
  randomUUID(): Promise<string> {
    return operation({ name: 'DBOS.randomUUID', isEffect: false }, async () => crypto.randomUUID());
  }

  /** True for workflows that take the way of a change in their code; see the guide on changing workflows. */
  patch(patchName: string): Promise<boolean> {
    return patch(patchName);
  }

  /** True always: the old way has been removed. */
  deprecatePatch(patchName: string): Promise<boolean> {
    return deprecatePatch(patchName);
  }

  // ── Context ────────────────────────────────────────────────────────────────────────────────────────────────────

  get logger(): DLogger {
    const context = currentContext();
    const launched = context?.logger ?? context?.engine.logger ?? this.#engine?.logger;
    return launched ?? this.#config?.logger ?? consoleLogger(this.#config?.logLevel as LogLevel | undefined);
  }

  get applicationVersion(): string {
    return this.engineFor('applicationVersion').applicationVersion;
  }

  get executorID(): string {
    return this.engineFor('executorID').config.executorID;
  }

  get workflowID(): string | undefined {
    return currentContext()?.run?.workflowID;
  }

  get stepID(): number | undefined {
    const context = currentContext();
    return context?.step?.stepID ?? context?.transactionID;
  }

  get stepStatus(): StepStatus | undefined {
    return currentContext()?.step;
  }

  get authenticatedUser(): string {
    return currentContext()?.authenticatedUser ?? '';
  }

  get authenticatedRoles(): string[] {
    return [...(currentContext()?.authenticatedRoles ?? [])];
  }

  get assumedRole(): string {
    return currentContext()?.assumedRole ?? '';
  }

  requestObject(): object | undefined {
    return currentContext()?.request;
  }

  isInTransaction(): boolean {
    return currentContext()?.transactionID !== undefined;
  }

  isInStep(): boolean {
    return currentContext()?.step !== undefined;
  }

  isWithinWorkflow(): boolean {
    return currentContext()?.run !== undefined;
  }

  isInWorkflow(): boolean {
    return isWorkflowCode(currentContext());
  }
}

/** A further instance, isolated from `DBOS` and all others: its own functions, configuration and engine. */
export function createDBOS(testSettings?: TestSettings): DBOSInstance {
  return new DBOSInstance(testSettings);
}

/** The default instance. */
export const DBOS = new DBOSInstance({}, defaultRegistry);
setDefaultQueueOwner(DBOS);
setDefaultHost(DBOS);
