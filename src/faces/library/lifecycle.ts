// Launches an instance and shuts it down: the engine, the admin server and the plugins.
import { systemClock } from '../../kernel/base/clock.js';
import { Deadline } from '../../kernel/base/time-limit.js';
import { inMs } from '../../kernel/base/duration.js';
import type { Server } from 'node:http';
import type { AdminServer } from '../http/http/server.js';
import type { AdminOutbox } from '../../plugins/outbox/outbox-view.http.js';
import type { LocalEngine } from '../http/source.js';
import { internals } from '../../kernel/base/internals.js';
import { consoleLogger, type DLogger, type LogLevel, stackHere } from '../../kernel/base/log.js';
import { Codec } from '../../kernel/codec/codec.js';
import type { SerializationRecipe } from '../../kernel/codec/serializer.js';
import { faultOfClock } from '../../features/diagnosis/clock-difference.js';
import {
  checkConfig,
  configuredIdentity,
  type DBOSConfig,
  type EngineConfig,
  loadConfig,
} from '../../run/config/config.js';
import { Engine, shutdownMsOf } from '../../run/engine.js';
import type { Runtime, RuntimeOptions } from '../../run/runtime.js';
import type { DBOSTracer } from '../../run/tracing.js';
import type { Registration, Registry } from '../../run/registration/registry.js';
import { temporarySend } from '../../features/message/temporary-sends.run.js';
import { currentContext } from '../../run/ambient.js';
import {
  DBOSAlreadyLaunchedError,
  DBOSConflictingRegistrationError,
  DBOSExecutorNotInitializedError,
  DBOSInitializationError,
  type JSONValue,
} from '../../kernel/errors/errors.js';
import type { MethodRegistrationBase } from './associations.js';
import { IdleWatch } from './idle-watch.js';
import { describeLaunch, warnOfMinified, warnOfMinifiedErrors, warnOfNameless } from './launch-message.js';
import type {
  AlertHandler,
  DBOSLaunchOptions,
  DBOSLifecycleCallback,
  DBOSMethodMiddlewareInstaller,
  ShutdownOptions,
} from './types.js';

/** For tests: manually advanced clocks, and how eagerly workflows are parked. */
export type TestSettings = Pick<RuntimeOptions, 'clock' | 'databaseNow' | 'parkingPace'>;

export interface LifecycleOptions {
  readonly registry: Registry;
  readonly testSettings: TestSettings;
  /** A registered function as plugins see it. */
  readonly viewOf: (registration: Registration) => MethodRegistrationBase;
}

export interface Identity {
  readonly applicationVersion: string;
  readonly executorID: string;
}

export function identityOf({ applicationVersion, config }: Runtime): Identity {
  return { applicationVersion, executorID: config.executorID };
}

export class Lifecycle {
  readonly #options: LifecycleOptions;
  readonly #callbacks = new Set<DBOSLifecycleCallback>();
  readonly #middleware = new Set<DBOSMethodMiddlewareInstaller>();
  readonly #recipes: SerializationRecipe<unknown, JSONValue>[] = [];
  #config: DBOSConfig | undefined;
  #alertHandler: AlertHandler | undefined;
  #engine: Engine | undefined;
  /** Of the last launch. */
  #identity: Identity | undefined;
  #adminServer: AdminServer | undefined;
  #areReceiversActive = false;
  #idleWatch: IdleWatch | undefined;
  #launching: Promise<void> | undefined;
  #shuttingDown: Promise<void> | undefined;
  /** As configured for the last launch. */
  #shutdownTimeoutMs: number | undefined;

  constructor(options: LifecycleOptions) {
    this.#options = options;
  }

  /** Whether `launch()` was called and has not finished. */
  get isLaunching(): boolean {
    return this.#launching !== undefined;
  }

  /** The engine, from launch until a shutdown accepts no more work. */
  get engine(): Engine | undefined {
    return this.#engine;
  }

  get identity(): Identity {
    return this.#identity ?? configuredIdentity(this.#config);
  }

  get adminServer(): Server | undefined {
    return this.#adminServer?.http;
  }

  get logger(): DLogger {
    const context = currentContext();
    const launched = context?.logger ?? context?.runtime.logger ?? this.#engine?.runtime.logger;
    return launched ?? this.#config?.logger ?? consoleLogger(this.#config?.logLevel as LogLevel | undefined);
  }

  get tracer(): DBOSTracer | undefined {
    return (currentContext()?.runtime ?? this.#engine?.runtime)?.tracer;
  }

  setConfig(config: DBOSConfig): void {
    if (this.#engine || this.#launching)
      throw new DBOSAlreadyLaunchedError('Cannot call DBOS.setConfig after DBOS.launch()');
    checkConfig(config);
    this.#config = config;
    this.#identity = undefined;
  }

  addCallback(callback: DBOSLifecycleCallback): void {
    this.#callbacks.add(callback);
  }

  addMiddleware(installer: DBOSMethodMiddlewareInstaller): void {
    const { registry } = this.#options;
    if (registry.isReloadable && this.#engine) return;
    registry.refuseAfterLaunch();
    this.#middleware.add(installer);
  }

  addRecipe(recipe: SerializationRecipe<unknown, JSONValue>): void {
    if (this.#options.registry.isReloadable && this.#engine) return;
    if (this.#engine)
      throw new DBOSAlreadyLaunchedError('DBOS.registerSerialization must be called before DBOS.launch()');
    this.#recipes.push(recipe);
  }

  async launch(options: DBOSLaunchOptions): Promise<void> {
    if (this.#shuttingDown)
      throw new DBOSAlreadyLaunchedError('DBOS is shutting down. Await DBOS.shutdown() before launching again.');
    if (this.#engine) return;
    this.#launching ??= this.#launch(stackHere('launch')).finally(() => (this.#launching = undefined));
    await this.#launching;
    if (options.conductorKey !== undefined) {
      this.logger.warn('Everstep does not connect to DBOS Conductor. The options of DBOS.launch have no effect.');
    }
  }

  async #launch(stack: string): Promise<void> {
    const { registry, testSettings } = this.#options;
    const config = await loadConfig(this.#config);
    this.#shutdownTimeoutMs = config.shutdownTimeoutMs;
    this.#installMiddleware();
    const initialized: DBOSLifecycleCallback[] = [];
    try {
      registry.freeze(stack, [temporarySend]);
      for (const instance of registry.instances) await (instance as { initialize?(): Promise<void> }).initialize?.();
      const codec = this.#newCodec(config);
      const tracer = config.tracingEnabled ? await this.#loadTracer(config) : undefined;
      this.#engine = await Engine.launch({ config, registry, codec, tracer, ...testSettings });
      this.#identity = identityOf(this.#engine.runtime);
      for (const callback of this.#callbacks) {
        // Destroy one that fails too: it may have opened something before.
        initialized.push(callback);
        await callback.initialize?.();
      }
      this.logRegisteredEndpoints();
      this.#areReceiversActive = true;
      if (config.runAdminServer) await this.#startAdminServer(config, this.#engine.runtime);
      if (config.shutdownAfterIdleMs !== undefined) this.#shutdownAfterIdle(this.#engine, config.shutdownAfterIdleMs);
      const { clock, databaseClock } = this.#engine.runtime;
      const clockFault = faultOfClock(clock.now() - databaseClock.now());
      this.#shutdownWhenLost(this.#engine.runtime);
      const warnings = [warnOfNameless(registry), warnOfMinified(registry), warnOfMinifiedErrors(registry), clockFault];
      for (const warning of warnings) if (warning) config.logger.warn(warning);
      config.logger.info(describeLaunch(this.#engine));
      // The line that scripts written for DBOS wait for.
      config.logger.info('DBOS launched!');
    } catch (error) {
      const stopIntake = (deadline: Deadline): Promise<void> => this.#destroy(initialized, deadline);
      await this.#engine?.shutdown({ deadline: this.#deadlineFor(0), stopIntake });
      this.#engine = undefined;
      registry.thaw();
      throw isMissingDatabase(error) ? new DBOSInitializationError(error.message, error) : error;
    }
  }

  #shutdownAfterIdle(engine: Engine, idleMs: number): void {
    this.#idleWatch = new IdleWatch(engine, idleMs, () => {
      engine.runtime.logger.info(`Shutting down: nothing has run for ${idleMs} ms.`);
      // Not awaited: the shutdown waits for the watch to end.
      this.shutdown({}).catch((error: unknown) => this.logger.error(error));
    });
  }

  /** Without its database for good, an engine can only hold on to work that others could do. */
  #shutdownWhenLost({ database, logger }: Runtime): void {
    const { lost } = database;
    lost?.addEventListener('abort', () => {
      logger.error(`Shutting down: ${(lost.reason as Error).message}`);
      this.shutdown({}).catch((error: unknown) => logger.error(error));
    });
  }

  #installMiddleware(): void {
    const { registry, viewOf } = this.#options;
    for (const registration of registry.registrations) registration.interceptors.length = 0;
    for (const installer of this.#middleware) {
      for (const registration of registry.registrations) installer.installMiddleware(viewOf(registration));
    }
  }

  #newCodec({ serializer, lostValues, maxPayloadBytes, warnsOfErrors, logger }: EngineConfig): Codec {
    const codec = new Codec(serializer, {
      knownErrors: this.#options.registry.errors,
      warnsOfErrors,
      lostValues,
      maxPayloadBytes,
      warn: (message) => logger.warn(message),
    });
    for (const recipe of this.#recipes) codec.registerRecipe(recipe);
    return codec;
  }

  /** Loaded lazily: most processes trace nothing. */
  async #loadTracer({ otelAttributeFormat: format, logger }: EngineConfig): Promise<DBOSTracer | undefined> {
    const { loadTracer } = await import('../../plugins/telemetry/opentelemetry.js');
    return loadTracer({ format, logger });
  }

  async #startAdminServer(config: EngineConfig, { clock }: Runtime): Promise<void> {
    const { adminHost: host, adminPort: port, adminToken: token, adminOpen: isOpen, logger } = config;
    const { adminReadOnlyToken: readOnlyToken } = config;
    const source = { [internals]: this, deactivateEventReceivers: () => this.deactivateEventReceivers() };
    // Loaded lazily: most processes never serve it.
    const [{ createAdmin }, { AdminServer }] = await Promise.all([
      import('../http/admin.js'),
      import('../http/http/server.js'),
    ]);
    const callbacks: object[] = [...this.#callbacks];
    const outboxes = Object.fromEntries(callbacks.filter(isOutbox).map((outbox) => [outbox.name, outbox]));
    const admin = createAdmin({ source, token, readOnlyToken, isOpen, outboxes });
    this.#adminServer = await AdminServer.start(admin, { host, port, logger, clock });
  }

  /** The source of the admin interface. */
  get operator(): Runtime {
    return this.#launched.runtime;
  }

  /** What only a process that runs workflows can do. */
  get localEngine(): LocalEngine {
    const { runtime, runs, liveness } = this.#launched;
    return {
      executorID: runtime.config.executorID,
      applicationVersion: runtime.applicationVersion,
      runCount: runs.all.length,
      memoryQueues: () => [...runtime.registry.queues.values()],
      recoverExecutor: (executorID) => liveness.recoverExecutor(executorID),
    };
  }

  get #launched(): Engine {
    if (!this.#engine) throw new DBOSExecutorNotInitializedError();
    return this.#engine;
  }

  async shutdown(options: ShutdownOptions): Promise<void> {
    const { registry } = this.#options;
    registry.isShuttingDown = true;
    this.#shuttingDown ??= this.#shutdown(options).finally(() => {
      this.#shuttingDown = undefined;
      registry.isShuttingDown = false;
    });
    await this.#shuttingDown;
  }

  async #shutdown({ deregister = false, ...options }: ShutdownOptions): Promise<void> {
    const { registry } = this.#options;
    const completionMs = inMs(options.workflowCompletionTimeoutMS) ?? 0;
    const deadline = this.#deadlineFor(completionMs);
    if (!(await this.#hasLaunched(deadline))) return;
    await this.#idleWatch?.stop();
    this.#idleWatch = undefined;
    await this.#engine?.shutdown({ deadline, completionMs, stopIntake: (until) => this.#stopIntake(until) });
    registry.thaw();
    if (deregister) this.clearRegistry();
  }

  /** By when everything has to be over, if the workflows get so long to end. */
  #deadlineFor(completionMs: number): Deadline {
    const { clock = systemClock } = this.#options.testSettings;
    return new Deadline(clock, shutdownMsOf({ shutdownTimeoutMs: this.#shutdownTimeoutMs }, completionMs));
  }

  /** Waits for a launch in progress. One that does not end in time is undone when it does. */
  async #hasLaunched(deadline: Deadline): Promise<boolean> {
    const launching = this.#launching?.catch(() => {
      // The caller of launch sees the error.
    });
    if (!launching || (await deadline.settles(launching))) return true;
    this.logger.warn('The launch did not end in time for the shutdown. What it opens will be closed when it does.');
    void launching.then(() => this.shutdown({}));
    return false;
  }

  /** Plugins may still hand over work while they stop. */
  async #stopIntake(deadline: Deadline): Promise<void> {
    await this.#deactivate(deadline);
    this.#engine = undefined;
    if (this.#adminServer) await deadline.settles(this.#adminServer.close());
    this.#adminServer = undefined;
  }

  clearRegistry(): void {
    if (this.#engine || this.#launching)
      throw new DBOSAlreadyLaunchedError('Cannot call DBOS.clearRegistry after DBOS.launch');
    this.#options.registry.clear();
    this.#callbacks.clear();
    this.#middleware.clear();
    this.#recipes.length = 0;
    this.#alertHandler = undefined;
  }

  setAlertHandler(handler: AlertHandler): void {
    if (this.#engine) throw new DBOSAlreadyLaunchedError('Cannot set alert handler after DBOS.launch()');
    if (this.#alertHandler) {
      throw new DBOSConflictingRegistrationError('Alert handler is already registered. Only one handler is allowed.');
    }
    this.#alertHandler = handler;
  }

  async initEventReceivers(): Promise<void> {
    if (!this.#engine || this.#areReceiversActive) return;
    this.#areReceiversActive = true;
    for (const callback of this.#callbacks) await callback.initialize?.();
  }

  async deactivateEventReceivers(): Promise<void> {
    await this.#deactivate(this.#deadlineFor(0));
  }

  async #deactivate(deadline: Deadline): Promise<void> {
    if (!this.#areReceiversActive) return;
    this.#areReceiversActive = false;
    await this.#destroy(this.#callbacks, deadline);
  }

  /** All at once: one that hangs must not keep the others from stopping. */
  async #destroy(callbacks: Iterable<DBOSLifecycleCallback>, deadline: Deadline): Promise<void> {
    const destroying = [...callbacks].map(async (callback) => {
      try {
        if (await deadline.settles(Promise.resolve(callback.destroy?.(deadline)))) return;
        this.logger.warn('A receiver, outbox or other lifecycle callback did not stop in time for the shutdown.');
      } catch (error) {
        this.logger.error(error);
      }
    });
    await Promise.all(destroying);
  }

  logRegisteredEndpoints(): void {
    for (const callback of this.#callbacks) callback.logRegisteredEndpoints?.();
  }
}

/** Postgres says so only when it is connected to, unlike the file of SQLite. */
function isMissingDatabase(error: unknown): error is Error {
  return error instanceof Error && (error.cause as { code?: unknown } | undefined)?.code === '3D000';
}

/** An outbox is told by what the admin interface uses of it: its module is not loaded for that. */
function isOutbox(
  callback: DBOSLifecycleCallback,
): callback is DBOSLifecycleCallback & AdminOutbox & { readonly name: string } {
  return 'checkSchema' in callback && 'statistics' in callback && 'name' in callback;
}
