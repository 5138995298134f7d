// One engine per `createDBOS()`: assembles a runtime and its services, starts them in order, stops them in reverse.
import { Deadline } from '../kernel/base/time-limit.js';
import { isImported } from '../kernel/workflow/creator.js';
import { DatabaseClosedError } from '../kernel/errors/errors.js';
import { noteCluster } from '../features/history/epochs.sql.js';
import { listVersions, registerVersion } from '../features/version/versions.sql.js';
import { readNow } from '../database/now.js';
import type { EngineConfig } from './config/config.js';
import { adoptAtLaunch } from '../features/liveness/adoption.run.js';
import { Liveness } from '../features/liveness/liveness.run.js';
import { OtherProgramsWatch } from './other-programs-watch.js';
import { QueueService } from '../features/queue/queue-service.run.js';
import type { Registry } from './registration/registry.js';
import { currentContext, whileWaiting } from './ambient.js';
import { Deadlines } from './deadlines.js';
import { Handle, registerHandles } from './handles.js';
import { MissedWakes } from '../features/parking/missed-wakes.run.js';
import { Parking } from '../features/parking/parking.run.js';
import { Ownership } from './ownership.js';
import { Runs } from './runs.js';
import { listenForErrors } from './unhandled-rejections.js';
import { Slots } from './slots.js';
import { Runtime, type RuntimeOptions } from './runtime.js';
import { RetentionService } from '../features/retention/retention-service.run.js';
import { Scheduler } from '../features/schedule/scheduler.run.js';
import { StrandedWork } from '../features/queue/stranded-work.run.js';
import { Transactions } from '../plugins/transaction/transactions.run.js';

/** A background part of the engine. It may be stopped twice, or without having been started. */
interface EngineService {
  start(): void | Promise<void>;
  /** One that needs no other way to stop in a hurry is just left behind when the time is over. */
  stop(deadline: Deadline): Promise<void>;
}

/** Services by name, in start order. They stop in reverse. */
type EngineServices = Readonly<Record<string, EngineService>>;

export interface ShutdownPlan {
  readonly deadline: Deadline;
  /** How long the runs get to end by themselves. Default: not at all. */
  readonly completionMs?: number;
  /** Stops what brings in work from outside the engine, which it still accepts meanwhile. */
  readonly stopIntake?: (deadline: Deadline) => Promise<void>;
}

/** How long a shutdown takes at most, by default: Kubernetes gives a process 30 seconds. */
const SHUTDOWN_MS = 25_000;
/** What is left of it, at least, when the runs have had their time, unless the whole is configured. */
const AFTER_RUNS_MS = 10_000;
/** What is kept of the time of a shutdown to hand back workflows, and as much again to close: a part, and at most. */
const SHARE = 1 / 5;
const SHARE_MAX_MS = 5_000;

/** How many unfinished workflows a shutdown names in the log. */
const UNFINISHED_MAX = 20;

/** How long a shutdown takes at most in which the runs get so long to end. */
export function shutdownMsOf({ shutdownTimeoutMs }: Partial<EngineConfig>, completionMs = 0): number {
  return shutdownTimeoutMs ?? Math.max(SHUTDOWN_MS, completionMs + AFTER_RUNS_MS);
}

export class Engine {
  readonly runtime: Runtime;
  readonly runs: Runs;
  readonly ownership: Ownership;
  readonly liveness: Liveness;
  readonly deadlines: Deadlines;
  readonly queues: QueueService;
  readonly parking: Parking;
  readonly missedWakes: MissedWakes;
  readonly scheduler: Scheduler;
  readonly transactions: Transactions;
  readonly otherPrograms: OtherProgramsWatch;
  readonly strandedWork: StrandedWork;
  readonly retention: RetentionService;

  private constructor(runtime: Runtime, runs: Runs) {
    this.runtime = runtime;
    this.runs = runs;
    this.transactions = new Transactions(runtime, runs);
    this.ownership = new Ownership(runtime, runs);
    this.otherPrograms = new OtherProgramsWatch(runtime);
    this.strandedWork = new StrandedWork(runtime);
    this.retention = new RetentionService(runtime);
    this.liveness = new Liveness(runtime, this.ownership);
    this.deadlines = new Deadlines({ runtime, runs, ownership: this.ownership });
    this.queues = new QueueService({
      runtime,
      runs,
      ownership: this.ownership,
      deadlines: this.deadlines,
      peers: this.liveness,
    });
    this.parking = new Parking({
      runtime,
      runs,
      deadlines: this.deadlines,
      findWork: () => this.queues.refresh(),
      mayLeave: (queueName) => this.queues.mayLeave(queueName),
      isLimited: (queueName) => this.queues.isLimited(queueName),
    });
    this.missedWakes = new MissedWakes(runtime);
    this.scheduler = new Scheduler({ runtime, announceQueued: (workflows) => this.queues.announce(workflows) });
    runtime.engine = this;
    runtime.dataSources = this.transactions;
    registerHandles(runtime.codec, (workflowID) => this.handleOf(workflowID));
  }

  get #services(): EngineServices {
    const { transactions, liveness, ownership } = this;
    return { transactions, liveness, ownership, ...this.#helpers, ...this.#intake };
  }

  /** The services that running workflows rely on. */
  get #helpers(): EngineServices {
    const { deadlines, parking, missedWakes, otherPrograms } = this;
    return { deadlines, parking, missedWakes, otherPrograms };
  }

  /** The services that bring in work, or do work of their own. A shutdown stops them first, then waits for the runs. */
  get #intake(): EngineServices {
    const { strandedWork, retention, queues, scheduler } = this;
    return { strandedWork, retention, queues, scheduler };
  }

  /** Opens the store and starts the services. */
  static async launch(options: RuntimeOptions): Promise<Engine> {
    const runs = new Runs(new Slots(options.config.maxConcurrentWorkflows));
    const runtime = await Runtime.open(options, {
      has: (workflowID) => runs.has(workflowID),
      written: (workflowIDs) => runs.written(workflowIDs),
      waitsOf: (workflowID) => runs.of([workflowID])[0]?.waits.begun,
      whileWaiting,
    });
    const started: Record<string, EngineService> = {};
    let engine: Engine;
    try {
      listenForErrors();
      await runtime.databaseClock.learn(() => readNow(runtime.database));
      engine = new Engine(runtime, runs);
      await Promise.all([registerThisVersion(runtime), noteCluster(runtime.database)]);
      await adoptAtLaunch(runtime);
      for (const [name, service] of Object.entries(engine.#services)) {
        // Add it before it starts: a service that fails halfway must be stopped too.
        started[name] = service;
        await service.start();
      }
    } catch (error) {
      const deadline = new Deadline(runtime.clock, shutdownMsOf(runtime.config));
      await stopInTurn(runtime, started, deadline);
      await close(runtime, error as Error, deadline);
      throw error;
    }
    options.registry.engine = engine;
    return engine;
  }

  /**
   * Waits for the runs here, puts the rest back on their queues, and closes the store. The workflows are handed back while
   * there is time for it, whatever else does not stop: peers could take them over only when the lease has ended.
   */
  async shutdown({ deadline, completionMs = 0, stopIntake = async () => {} }: ShutdownPlan): Promise<void> {
    const { runtime, transactions, liveness, ownership } = this;
    const shareMs = Math.min(deadline.leftMs * SHARE, SHARE_MAX_MS);
    const untilHandBack = deadline.before(2 * shareMs);
    const untilClose = deadline.before(shareMs);
    await stopIntake(untilHandBack);
    runtime.registry.engine = undefined;
    await stopAll(runtime, this.#intake, untilHandBack);
    await this.runs.drain(untilHandBack.within(completionMs));
    this.#logUnfinished();
    // What is still at it by then is fenced off by the owner tokens.
    await stopAll(runtime, this.#helpers, untilClose.within(shareMs / 2));
    await stopInTurn(runtime, { liveness, ownership }, untilClose);
    await stopAll(runtime, { transactions }, deadline.before(shareMs / 2));
    const reason = new DatabaseClosedError('Everstep was shut down in this process while the workflow was running.');
    await close(runtime, reason, deadline);
  }

  #logUnfinished(): void {
    const workflowIDs = this.runs.all.map(({ workflowID }) => workflowID);
    if (workflowIDs.length === 0) return;
    this.runtime.logger.warn(
      `Shutting down with ${workflowIDs.length} workflow(s) still running. They go back to their queues: ` +
        workflowIDs.slice(0, UNFINISHED_MAX).join(', '),
    );
  }

  /** A handle of a workflow that may be yet to be started. */
  handleOf<R>(workflowID: string): Handle<R> {
    return new Handle<R>(this.runtime, workflowID, { local: this.runs.endOf(workflowID) });
  }

  /** A handle of a workflow that exists, or did when a workflow that is replayed got this handle. */
  handleOfExisting<R>(workflowID: string): Handle<R> {
    const context = currentContext();
    // A workflow may be imported before its children.
    const hasExisted = !context?.run || !isImported(context.run.creator);
    return new Handle<R>(this.runtime, workflowID, { local: this.runs.endOf(workflowID), hasExisted });
  }

  /** The engine that a runtime belongs to. */
  static of(runtime: Runtime): Engine {
    return runtime.engine as Engine;
  }

  /** The engine launched with this registry. */
  static launchedWith(registry: Registry): Engine | undefined {
    return registry.engine as Engine | undefined;
  }
}

async function registerThisVersion({ applicationName, applicationVersion, database, logger }: Runtime): Promise<void> {
  await registerVersion(database, applicationVersion, applicationName);
  const [latest] = await listVersions(database, applicationName);
  if (latest && latest.versionName !== applicationVersion) {
    logger.warn(
      `This process runs application version "${applicationVersion}", but the latest is "${latest.versionName}".`,
    );
  }
}

/** Stops services that do not rely on each other. */
async function stopAll(runtime: Runtime, services: EngineServices, deadline: Deadline): Promise<void> {
  await Promise.all(Object.entries(services).map((named) => stop(runtime, named, deadline)));
}

/** Stops services in the reverse order of their start. */
async function stopInTurn(runtime: Runtime, services: EngineServices, deadline: Deadline): Promise<void> {
  for (const named of Object.entries(services).reverse()) await stop(runtime, named, deadline);
}

async function stop(
  { logger }: Runtime,
  [name, service]: readonly [string, EngineService],
  deadline: Deadline,
): Promise<void> {
  try {
    const isStopped = await deadline.settles(service.stop(deadline));
    if (!isStopped) logger.warn(`Left behind at the shutdown, because it did not stop in time: ${name}`);
  } catch (error) {
    logger.warn(`A service did not stop cleanly: ${name}: ${String(error)}`);
  }
}

async function close(runtime: Runtime, reason: Error, deadline: Deadline): Promise<void> {
  if (await deadline.settles(runtime.close(reason))) return;
  runtime.logger.warn('The connections to the system database could not be closed in time.');
  // Or it would go on to write when the database is back.
  void runtime.store.writer.abandon();
}
