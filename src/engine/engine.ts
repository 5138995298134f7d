// One engine per `createDBOS()`: assembles a runtime and its services, starts them in order, stops them in reverse.
import { DatabaseClosedError } from '../model/errors/errors.js';
import { listVersions, registerVersion } from '../store/management/versions.js';
import { readNow } from '../store/schedules/schedules.js';
import { adoptAtLaunch } from './liveness/adoption.js';
import { Liveness } from './liveness/liveness.js';
import { OtherProgramsWatch } from './notify/other-programs-watch.js';
import { QueueService } from './queues/queue-service.js';
import type { Registry } from './registration/registry.js';
import { whileWaiting } from './runs/ambient.js';
import { Deadlines } from './runs/deadlines.js';
import { Handle, registerHandles } from './runs/handles.js';
import { MissedWakes } from './parking/missed-wakes.js';
import { Parking } from './parking/parking.js';
import { Ownership } from './runs/ownership.js';
import { Runs } from './runs/runs.js';
import { Runtime, type RuntimeOptions } from './runtime.js';
import { RetentionService } from './management/retention-service.js';
import { Scheduler } from './schedules/scheduler.js';
import { StrandedWork } from './queues/stranded-work.js';
import { Transactions } from './transactions/transactions.js';

/** A background part of the engine. It may be stopped twice, or without having been started. */
interface EngineService {
  start(): void | Promise<void>;
  stop(): Promise<void>;
}

/** How many unfinished workflows a shutdown names in the log. */
const UNFINISHED_MAX = 20;

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

  /** In start order. They stop in reverse. */
  get #services(): readonly EngineService[] {
    const { transactions, liveness, ownership, deadlines, parking, missedWakes } = this;
    const { otherPrograms, strandedWork, retention } = this;
    const waits = [deadlines, parking, missedWakes];
    return [transactions, liveness, ownership, ...waits, otherPrograms, strandedWork, retention, ...this.#intake];
  }

  /** The services that bring in work. A shutdown stops them first, then waits for the runs. */
  get #intake(): readonly EngineService[] {
    return [this.queues, this.scheduler];
  }

  /** Opens the store and starts the services. */
  static async launch(options: RuntimeOptions): Promise<Engine> {
    const runs = new Runs();
    const runtime = await Runtime.open(options, {
      has: (workflowID) => runs.has(workflowID),
      written: (workflowIDs) => runs.written(workflowIDs),
      waitsOf: (workflowID) => runs.of([workflowID])[0]?.waits.begun,
      whileWaiting,
    });
    const started: EngineService[] = [];
    let engine: Engine;
    try {
      await runtime.databaseClock.learn(() => readNow(runtime.database));
      engine = new Engine(runtime, runs);
      await registerThisVersion(runtime);
      await adoptAtLaunch(runtime);
      for (const service of engine.#services) {
        // Add it before it starts: a service that fails halfway must be stopped too.
        started.unshift(service);
        await service.start();
      }
    } catch (error) {
      await stopAll(runtime, started);
      await runtime.close(error as Error);
      throw error;
    }
    options.registry.engine = engine;
    return engine;
  }

  /** Waits up to `timeoutMs` for the runs here, puts the rest back on their queues, and closes the store. */
  async shutdown(timeoutMs: number): Promise<void> {
    const { clock, registry } = this.runtime;
    registry.engine = undefined;
    await stopAll(this.runtime, this.#intake.toReversed());
    await this.runs.drain(clock, timeoutMs);
    this.#logUnfinished();
    const rest = this.#services.filter((service) => !this.#intake.includes(service));
    await stopAll(this.runtime, rest.toReversed());
    await this.runtime.close(
      new DatabaseClosedError('Everstep was shut down in this process while the workflow was running.'),
    );
  }

  #logUnfinished(): void {
    const workflowIDs = this.runs.all.map(({ workflowID }) => workflowID);
    if (workflowIDs.length === 0) return;
    this.runtime.logger.warn(
      `Shutting down with ${workflowIDs.length} workflow(s) still running. They go back to their queues: ` +
        workflowIDs.slice(0, UNFINISHED_MAX).join(', '),
    );
  }

  handleOf<R>(workflowID: string): Handle<R> {
    return new Handle<R>(this.runtime, workflowID, this.runs.endOf(workflowID));
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

async function stopAll({ logger }: Runtime, services: readonly EngineService[]): Promise<void> {
  for (const service of services) {
    await service.stop().catch((error: unknown) => {
      logger.warn(`A service did not stop cleanly: ${String(error)}`);
    });
  }
}
