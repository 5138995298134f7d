// The runtime: one for each `createDBOS()`. It owns the store, the runs of this process and the services around them,
// and ties them together. What an operation does stands in the files beside this one.
import { hostname } from 'node:os';
import { type Clock, systemClock } from '../base/clock.js';
import { newID } from '../base/ids.js';
import type { DLogger } from '../base/log.js';
import { Throttle } from '../base/throttle.js';
import { LIBRARY_VERSION } from '../base/version.js';
import type { Codec } from '../codec/codec.js';
import { cancelWorkflows } from '../control/management/lifecycle.js';
import { type News, type Operator, tellOfQueued } from '../control/operator.js';
import { DatabaseClosedError, DBOSWorkflowConflictError } from '../model/errors/errors.js';
import type { QueueLimits, QueueRecord } from '../model/queues.js';
import type { WorkflowRecord } from '../model/records.js';
import {
  cancelOverdue,
  type Changed,
  findOwnedBy,
  handBack,
  msToNextDeadline,
  type Owned,
  recoverExecutor,
} from '../store/runs/lifecycle.js';
import type { Database } from '../store/database.js';
import { describePresence, presenceKey, presenceOn } from '../store/liveness/presence.js';
import { withRetry } from '../store/retry.js';
import { Store } from '../store/store.js';
import { listVersions, registerVersion } from '../store/management/versions.js';
import { CHANNELS, type Wakeup } from '../store/notify/wakeups.js';
import { findLost, findWorkflows, type NewWorkflow } from '../store/runs/workflows.js';
import { computeApplicationVersion } from './config/application-version.js';
import { whileWaiting } from './runs/ambient.js';
import type { EngineConfig } from './config/config.js';
import { Deadlines } from './runs/deadlines.js';
import type { Invocation } from './runs/execute.js';
import { Handle } from './runs/handles.js';
import { Liveness } from './liveness/liveness.js';
import { Queueing } from './queues/queueing.js';
import type { Registry } from './registration/registry.js';
import type { Run } from './runs/run.js';
import { Runs } from './runs/runs.js';
import { Scheduler } from './schedules/scheduler.js';
import { Watches } from '../control/runs/watches.js';
import { Transactions } from './transactions/transactions.js';

export interface EngineOptions {
  readonly config: EngineConfig;
  readonly registry: Registry;
  readonly codec: Codec;
  readonly clock?: Clock;
  /** Replaces the database clock; for tests that move time by hand. */
  readonly databaseNow?: () => number;
}

const OVERDUE_BATCH = 1000;
const LOOK_AROUND_MS = 250;
/** Long after a claim or start has begun its run. */
const ORPHAN_AGE_MS = 20_000;
/** How long a shutdown waits for a database that is away. */
const LEAVE_MAX_MS = 5_000;
/** Interests of other processes that are kept; beyond it the oldest are forgotten, and their waiters poll. */
const INTERESTS_MAX = 10_000;

export class Engine implements Operator {
  readonly config: EngineConfig;
  readonly registry: Registry;
  readonly codec: Codec;
  readonly clock: Clock;
  readonly logger: DLogger;
  readonly store: Store;
  readonly database: Database;
  readonly applicationName: string;
  readonly applicationVersion: string;
  readonly queryTimeoutMs: number;
  readonly watches: Watches;
  readonly news: News;
  readonly deadlines: Deadlines;
  readonly queueing: Queueing;
  readonly scheduler: Scheduler;
  readonly transactions: Transactions;
  readonly #incarnationID: string;
  readonly #liveness: Liveness;
  readonly #runs = new Runs((run) => this.#onEnd(run));
  readonly #interests = new Set<string>();
  #owners = 0;
  #isVerifying = false;
  /** Somebody has asked while the workflows were being looked up: what they told of may have come too late. */
  #isVerifyWanted = false;
  #isMeeting = false;
  #isLeaving = false;
  readonly #ending = new AbortController();
  /** On SQLite a busy neighbour wakes us many times a second; its commits are also the only sign of a new engine. */
  readonly #lookAround: Throttle;

  private constructor(options: EngineOptions, store: Store, incarnationID: string) {
    const { config, registry, codec } = options;
    this.config = config;
    this.registry = registry;
    this.codec = codec;
    this.clock = options.clock ?? systemClock;
    this.logger = config.logger;
    this.store = store;
    this.database = store.database;
    this.applicationName = config.name;
    this.queryTimeoutMs = config.observabilityQueryTimeoutMs;
    this.applicationVersion = config.applicationVersion ?? this.#computeVersion();
    this.#incarnationID = incarnationID;
    this.transactions = new Transactions(this);
    codec.registerRecipe<Handle<unknown>, { wfid: string }>({
      name: 'DBOS.WorkflowHandle',
      isApplicable: (value): value is Handle<unknown> => value instanceof Handle,
      serialize: (handle) => ({ wfid: handle.workflowID }),
      deserialize: ({ wfid }) => this.handleOf(wfid),
    });
    const { clock, logger } = this;
    const hasPush = config.store.useListenNotify !== false && !config.store.isTransactionPooler;
    this.#lookAround = new Throttle(clock, LOOK_AROUND_MS, () => {
      void this.#verifyRuns();
      void this.#meet();
      this.queueing.lookForDelayed();
      void this.scheduler.lookAround().catch((error: unknown) => logger.debug(String(error)));
    });
    this.watches = new Watches({
      clock,
      logger,
      store,
      hasPush,
      retrying: (look) => this.retrying(look),
      whileWaiting,
      isRunning: (workflowID) => this.#runs.of([workflowID]).length > 0,
    });
    this.deadlines = new Deadlines({
      clock,
      logger,
      cancel: (workflowID) => cancelWorkflows(this, [workflowID]),
      sweep: (signal) => this.#sweepOverdue(signal),
    });
    this.queueing = new Queueing({
      engine: this,
      runs: this.#runs,
      hasPush,
      engines: (queueName) => 1 + this.#liveness.countTwins(queueName),
    });
    this.scheduler = new Scheduler({
      engine: this,
      hasPush,
      onCancelled: (workflowIDs, signal) => this.#onChangedElsewhere(workflowIDs, signal),
    });
    this.news = {
      queued: (places) => this.queueing.announce(places),
      delayed: () => this.queueing.announceDelayed(),
      changed: (workflowIDs) => this.#onChangedElsewhere(workflowIDs),
      queuesChanged: () => this.queueing.announceChange(),
      schedulesChanged: (name) => this.scheduler.announceChange(name),
    };
    this.#liveness = new Liveness({
      database: store.database,
      presence: presenceOn(store.database, clock),
      clock,
      logger,
      incarnation: {
        incarnationID,
        executorID: config.executorID,
        applicationName: config.name,
        applicationVersion: this.applicationVersion,
        host: hostname(),
        pid: process.pid,
        metadata: describePresence(hasPush, {
          listenQueues: config.listenQueues ? [...config.listenQueues, ...registry.alwaysServed] : null,
          memoryQueues: [...registry.queues.keys()],
          functions: registry.workflowKeys,
          instances: registry.instanceKeys,
        }),
      },
      leaseMs: config.leaseSeconds * 1000,
      onRecovered: (changed) => {
        this.#warnOfUnknown(changed);
        this.queueing.announce(changed);
        // After a recovery whose answer was lost, the second one finds nothing left to tell of. And whoever has ended a
        // workflow and died has told nobody that its place is free.
        this.queueing.lookEverywhere();
      },
      onLeaseLost: () => void this.#verifyRuns(),
    });
  }

  /** Opens the store and begins to work. */
  static async launch(options: EngineOptions): Promise<Engine> {
    const { config } = options;
    // Time and randomness of an ID, without the rest: an owner token must fit into the 40 characters of older databases.
    const digits = newID().replaceAll('-', '');
    const incarnationID = digits.slice(0, 12) + digits.slice(16);
    const store = await Store.open({
      ...config.store,
      clock: options.clock,
      now: options.databaseNow,
      logger: config.logger,
      sessionLock: presenceKey(incarnationID),
    });
    const engine = new Engine(options, store, incarnationID);
    try {
      await engine.transactions.open();
      await engine.#begin();
    } catch (error) {
      await engine.transactions.close();
      await store.close();
      throw error;
    }
    options.registry.engine = engine;
    return engine;
  }

  async #begin(): Promise<void> {
    const { database, listener } = this.store;
    listener.subscribe((wakeup) => this.#onWakeup(wakeup));
    await registerVersion(database, this.applicationVersion, this.config.name);
    const [latest] = await listVersions(database, this.config.name);
    if (latest && latest.versionName !== this.applicationVersion) {
      this.logger.warn(
        `This process runs application version "${this.applicationVersion}", but the latest is "${latest.versionName}".`,
      );
    }
    await this.#liveness.start();
    if (this.config.isExecutorIDExplicit) await this.recoverExecutor(this.config.executorID);
    listener.notify(CHANNELS.executors, this.#incarnationID);
    this.queueing.start();
    await this.scheduler.start(this.registry.codeSchedules);
    this.deadlines.start();
  }

  /** Ends: waits for the runs here for so long, gives back what is left, and closes the store. */
  async shutdown(timeoutMs: number): Promise<void> {
    this.registry.engine = undefined;
    await this.scheduler.stop();
    await this.queueing.stop();
    await this.#drain(timeoutMs);
    const unfinished = this.#runs.all;
    if (unfinished.length > 0) {
      this.logger.warn(
        `Shutting down with ${unfinished.length} workflow(s) still running; they go back to their queues: ` +
          unfinished
            .slice(0, 20)
            .map((run) => run.workflowID)
            .join(', '),
      );
    }
    // A sweep would take what is stopped for orphans, and give it back before its last checkpoints are written.
    await this.deadlines.stop();
    this.#isLeaving = true;
    for (const run of this.#runs.all) this.#runs.stop(run, new DBOSWorkflowConflictError(run.workflowID));
    await this.#leave().catch((error: unknown) => {
      this.logger.warn(`The database could not be told that this process ends: ${String(error)}`);
    });
    await this.transactions.close();
    this.#ending.abort();
    this.#lookAround.stop();
    await this.watches.stop(
      new DatabaseClosedError('Everstep was shut down in this process while the workflow was running.'),
    );
    await this.store.close();
  }

  /** Gives back what is not finished and leaves the list of executors. While the database is away, only for so long. */
  async #leave(): Promise<void> {
    const { database, writer } = this.store;
    const timer = this.clock.after(LEAVE_MAX_MS, () => void writer.abandon());
    try {
      await writer.idle();
    } finally {
      timer.cancel();
    }
    // By what the database says: a child that was on its way may have no run here.
    const owned = await findOwnedBy(database, this.#incarnationID, 0);
    if (owned.length > 0) this.queueing.announce(await handBack(database, owned));
    await this.#liveness.stop();
  }

  async #drain(timeoutMs: number): Promise<void> {
    if (timeoutMs <= 0) return;
    await new Promise<void>((resolve) => {
      const timer = this.clock.after(timeoutMs, resolve);
      void this.#runs.idle().then(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  /** A fencing token that was never used before. It begins with the name of this launch. */
  newOwner(): string {
    this.#owners += 1;
    return `${this.#incarnationID}.${this.#owners.toString(36)}`;
  }

  /** Begins to execute a run and gives its handle. */
  launchRun<R>(invocation: Invocation): Handle<R> {
    const { run } = invocation;
    const end = this.#runs.launch(invocation);
    // A child that was on its way when its parent was stopped.
    if (this.#isLeaving) this.#runs.stop(run, new DBOSWorkflowConflictError(run.workflowID));
    return new Handle<R>(this, run.workflowID, end);
  }

  /** A run waits for others, or does so no more. */
  onWaiting(run: Run, isWaiting: boolean): void {
    this.#runs.setWaiting(run, isWaiting);
    if (isWaiting && run.queueName !== null) this.queueing.proceed();
  }

  #onEnd(run: Run): void {
    this.deadlines.forget(run);
    this.#tellEnded(run.workflowID);
    this.queueing.onFreed(run);
  }

  handleOf<R>(workflowID: string): Handle<R> {
    return new Handle<R>(this, workflowID, this.#runs.endOf(workflowID));
  }

  memoryLimits(queueName: string): QueueLimits | undefined {
    return this.queueing.queues.findInMemory(queueName)?.limits;
  }

  get executorID(): string {
    return this.config.executorID;
  }

  /** Workflows that run here. */
  get runCount(): number {
    return this.#runs.all.length;
  }

  /** The queues that the application has defined in memory. */
  memoryQueues(): QueueRecord[] {
    return [...this.registry.queues.values()];
  }

  /**
   * Repeats an operation that changes nothing when done twice, until the database is there or the engine ends. What the
   * end of the engine waits for gives a signal of its own, which aborts earlier.
   */
  retrying<T>(operation: () => Promise<T>, signal: AbortSignal = this.#ending.signal): Promise<T> {
    const { clock, logger } = this;
    return withRetry(operation, { clock, logger, signal, isIdempotent: true });
  }

  async findWorkflow(workflowID: string): Promise<WorkflowRecord | null> {
    const [record] = await this.retrying(() => findWorkflows(this.store.database, [workflowID]));
    return record ?? null;
  }

  /** Workflows were put into queues. */
  announceQueued(workflows: readonly NewWorkflow[]): void {
    if (workflows.some(({ deadlineAt }) => deadlineAt !== null)) this.deadlines.lookAgain();
    tellOfQueued(this.news, workflows);
  }

  /** Workflows whose function is not registered here wait for an executor that has it. Nobody shall wonder why. */
  #warnOfUnknown(changed: readonly Changed[]): void {
    const unknown = changed.filter(({ className, name }) => !this.registry.findWorkflow(className, name));
    for (const { workflowID, className, name } of unknown.slice(0, 10)) {
      const fullName = className === null ? name : `${className}.${name}`;
      this.logger.warn(
        `Workflow "${workflowID}" is to be recovered, but "${fullName}" is not registered here. It waits for an executor that has it.`,
      );
    }
  }

  /** Puts the running workflows of an executor ID back into their queues: whoever ran them is gone. */
  async recoverExecutor(executorID: string): Promise<string[]> {
    const changed = await recoverExecutor(this.store.database, {
      executorID,
      applicationVersion: this.applicationVersion,
      keptPrefix: this.#incarnationID,
    });
    this.#warnOfUnknown(changed);
    this.queueing.announce(changed);
    return changed.map(({ workflowID }) => workflowID);
  }

  /** The state of workflows was changed from outside their runs: tell the runs, here and elsewhere. */
  async #onChangedElsewhere(workflowIDs: readonly string[], signal?: AbortSignal): Promise<void> {
    const here = this.#runs.of(workflowIDs);
    await this.#stopLost(here, signal);
    const known = new Set(here.map((run) => run.workflowID));
    for (const workflowID of workflowIDs) {
      if (!known.has(workflowID)) this.store.listener.notify(CHANNELS.changes, workflowID);
      this.#tellEnded(workflowID);
    }
  }

  /** Stops those of the runs whose workflow is not theirs: one that was resumed may have a new run already. */
  async #stopLost(runs: readonly Run[], signal?: AbortSignal): Promise<void> {
    const stored = runs.filter((run) => run.isStored);
    if (stored.length === 0) return;
    const workflowIDs = stored.map(({ workflowID }) => workflowID);
    const found = await this.retrying(() => findWorkflows(this.database, workflowIDs), signal);
    const workflows = new Map(found.map((workflow) => [workflow.workflowID, workflow]));
    for (const run of stored) {
      const reason = run.lossIn(workflows.get(run.workflowID));
      if (!reason) continue;
      this.#runs.stop(run, reason);
      this.queueing.onFreed(run);
    }
  }

  #tellEnded(workflowID: string): void {
    this.watches.onEnded(workflowID);
    if (this.#interests.delete(workflowID)) this.store.listener.notify(CHANNELS.outcomes, workflowID);
  }

  #onWakeup(wakeup: Wakeup): void {
    this.watches.onWakeup(wakeup);
    if (wakeup.kind === 'anything') {
      this.queueing.lookAround();
      this.#lookAround.call();
      return;
    }
    if (wakeup.channel === CHANNELS.interest) this.#noteInterest(wakeup.payload);
    else if (wakeup.channel === CHANNELS.changes && this.#runs.of([wakeup.payload]).length > 0) void this.#verifyRuns();
    else if (wakeup.channel === CHANNELS.executors && wakeup.payload !== this.#incarnationID) void this.#meet();
    else if (wakeup.channel === CHANNELS.schedules) void this.scheduler.reload(wakeup.payload || undefined);
    else this.queueing.onMessage(wakeup.channel, wakeup.payload);
  }

  async #meet(): Promise<void> {
    if (this.#isMeeting) return;
    this.#isMeeting = true;
    await this.#liveness.lookAround().catch((error: unknown) => {
      this.logger.debug(`The list of executors could not be read: ${String(error)}`);
    });
    this.#isMeeting = false;
  }

  #noteInterest(workflowID: string): void {
    this.#interests.add(workflowID);
    if (this.#interests.size <= INTERESTS_MAX) return;
    const [oldest] = this.#interests;
    if (oldest !== undefined) this.#interests.delete(oldest);
  }

  /** Stops the runs here whose workflows are no longer theirs. */
  async #verifyRuns(signal?: AbortSignal): Promise<void> {
    this.#isVerifyWanted = true;
    if (this.#isVerifying) return;
    this.#isVerifying = true;
    try {
      while (this.#isVerifyWanted) {
        this.#isVerifyWanted = false;
        const running = this.#runs.all.filter((run) => run.isStored);
        if (running.length === 0) break;
        await this.#stopLost([...(await findLost(this.store.database, running))], signal);
      }
    } catch (error) {
      this.logger.debug(`The workflows running here could not be verified: ${(error as Error).message}`);
    } finally {
      this.#isVerifying = false;
    }
  }

  async #sweepOverdue(signal: AbortSignal): Promise<number | undefined> {
    await this.#verifyRuns(signal);
    await this.#giveBackOrphans();
    const nextMs = await msToNextDeadline(this.store.database);
    if (nextMs === undefined || nextMs > 0) return nextMs;
    await this.#onChangedElsewhere(await cancelOverdue(this.store.database, OVERDUE_BATCH), signal);
    return 0;
  }

  /** Gives back what is owned here but not run: a claim whose answer was lost leaves such workflows behind. */
  async #giveBackOrphans(): Promise<void> {
    const owned = await findOwnedBy(this.store.database, this.#incarnationID, ORPHAN_AGE_MS);
    await this.giveBack(owned);
  }

  /** Gives back those of the workflows that no run here has. */
  async giveBack(owned: readonly Owned[]): Promise<void> {
    const orphans = owned.filter(({ workflowID, owner }) => this.#runs.of([workflowID])[0]?.owner !== owner);
    if (orphans.length === 0) return;
    this.queueing.announce(await handBack(this.store.database, orphans));
  }

  #computeVersion(): string {
    const sources = [...this.registry.registrations]
      .filter((registration) => registration.kind === 'workflow')
      .map((registration) => registration.origFunction.toString());
    const version = computeApplicationVersion(sources, this.config.name, LIBRARY_VERSION);
    if (version !== undefined) return version;
    this.logger.warn(
      'The application version cannot be computed from the source of the workflows. Set applicationVersion in the configuration.',
    );
    return 'DEFAULT_VERSION';
  }
}
