// What the services and operations of an engine share: configuration, clock, database, bus, registry, owner tokens. It
// runs nothing itself. It is an operator, so every verb of the control room accepts it.
import { type Clock, systemClock } from '../kernel/base/clock.js';
import { RemoteClock } from '../kernel/base/remote-clock.js';
import { newID } from '../kernel/base/ids.js';
import type { DLogger } from '../kernel/base/log.js';
import type { Codec } from '../kernel/codec/codec.js';
import { type CompletionRecords, type Operator, withRetrying } from '../operator/operator.js';
import type { Wait } from '../operator/row-watcher.js';
import { RowWatchers, type RowWatchersOptions } from '../operator/row-watchers.js';
import { limitsOf, type QueueLimits } from '../features/queue/queue.js';
import type { Database } from '../database/database.js';
import { presenceKey } from '../features/liveness/presence.sql.js';
import type { Bus } from '../database/notify/bus.js';
import { withRetry } from '../database/retry.js';
import { readNow } from '../database/now.js';
import { Store } from './writer/store.js';
import { applicationVersionOf } from './config/application-version.js';
import type { EngineConfig } from './config/config.js';
import { Lease } from '../features/liveness/lease.run.js';
import type { ParkingPace } from '../features/parking/parking-rule.run.js';
import type { Registry } from './registration/registry.js';
import { Divergences } from './history/divergences.js';
import { OwnerLookup } from './owner-lookup.js';
import type { DBOSTracer } from './tracing.js';

export interface RuntimeOptions {
  readonly config: EngineConfig;
  readonly registry: Registry;
  readonly codec: Codec;
  readonly clock?: Clock;
  /** Replaces the database's clock; for tests that move time by hand. */
  readonly databaseNow?: () => number;
  /** For tests that park every wait. */
  readonly parkingPace?: ParkingPace;
  /** Makes spans. Default: none are made. */
  readonly tracer?: DBOSTracer;
}

/** What the runtime needs to know about the runs of this process. */
export interface LocalRuns {
  has(workflowID: string): boolean;
  written(workflowIDs: readonly string[]): Promise<void>;
  waitsOf(workflowID: string): readonly Wait[] | undefined;
  whileWaiting: RowWatchersOptions['whileWaiting'];
}

export class Runtime implements Operator {
  readonly config: EngineConfig;
  readonly registry: Registry;
  readonly codec: Codec;
  readonly clock: Clock;
  readonly logger: DLogger;
  readonly store: Store;
  readonly database: Database;
  readonly bus: Bus;
  readonly watchers: RowWatchers;
  readonly owners: OwnerLookup;
  readonly divergences: Divergences;
  readonly lease: Lease;
  /** The database's clock. Sleeps, timeouts and deadlines go by it. */
  readonly databaseClock: RemoteClock;
  readonly applicationName: string;
  readonly applicationVersion: string;
  readonly queryTimeoutMs: number;
  readonly archive: Operator['archive'];
  readonly retention: Operator['retention'];
  readonly parkingPace: ParkingPace | undefined;
  readonly tracer: DBOSTracer | undefined;
  /** Identifies this launch. Never reused. */
  readonly incarnationID: string;
  /** Whether notifications from other processes reach this one. */
  readonly hasPush: boolean;
  /** The engine it belongs to. `engine.ts` knows the type; naming it here would be an import cycle. */
  engine: object | undefined;
  /** Set by the engine. */
  dataSources: CompletionRecords | undefined;
  /** The runtime for callers outside of workflows. They get an error when the database cannot be used for long. */
  readonly callers: Runtime;
  readonly written: (workflowIDs: readonly string[]) => Promise<void>;
  readonly waitsOf: (workflowID: string) => readonly Wait[] | undefined;
  readonly #closing = new AbortController();
  #tokens = 0;
  #newestOwnerAt: number | undefined;

  private constructor(
    { config, registry, codec, clock, parkingPace, tracer }: RuntimeOptions,
    opened: Opened,
    runs: LocalRuns,
  ) {
    const { store, incarnationID } = opened;
    this.config = config;
    this.registry = registry;
    this.codec = codec;
    this.clock = clock ?? systemClock;
    this.logger = config.logger;
    this.store = store;
    this.database = store.database;
    this.bus = store.bus;
    this.incarnationID = incarnationID;
    this.applicationName = config.name;
    this.applicationVersion = config.applicationVersion ?? applicationVersionOf(registry, config);
    this.queryTimeoutMs = config.observabilityQueryTimeoutMs;
    this.hasPush = store.hasPush;
    this.archive = config.archive;
    this.retention = config.retention;
    this.parkingPace = parkingPace;
    this.tracer = tracer;
    this.databaseClock = new RemoteClock(this.clock, () =>
      this.retrying(() => this.databaseClock.learn(() => readNow(store.database))),
    );
    this.callers = withRetrying<Runtime>(this, (operation) => {
      const { clock, logger } = this;
      const signal = this.#closing.signal;
      return withRetry(operation, { clock, logger, signal, isIdempotent: true, limitMs: config.callTimeoutMs });
    });
    this.written = (workflowIDs) => runs.written(workflowIDs);
    this.waitsOf = (workflowID) => runs.waitsOf(workflowID);
    this.owners = new OwnerLookup(store.database);
    this.divergences = new Divergences({
      database: this.database,
      logger: this.logger,
      retrying: (statement) => this.retrying(statement),
    });
    this.lease = new Lease({
      clock: this.clock,
      leaseMs: config.leaseSeconds * 1000,
      isLockHeld: () => store.listener.isLockHeld,
      lockSession: () => store.listener.session,
    });
    this.watchers = new RowWatchers({
      clock: this.clock,
      databaseClock: this.databaseClock,
      logger: this.logger,
      database: this.database,
      bus: this.bus,
      hasPush: this.hasPush,
      retrying: (look) => this.retrying(look),
      whileWaiting: (begin, wait) => runs.whileWaiting(begin, wait),
      isRunning: (workflowID) => runs.has(workflowID),
    });
  }

  static async open(options: RuntimeOptions, runs: LocalRuns): Promise<Runtime> {
    const { config, clock, databaseNow } = options;
    const incarnationID = newIncarnationID();
    const store = await Store.open({
      ...config.store,
      clock,
      now: databaseNow,
      logger: config.logger,
      sessionLock: presenceKey(incarnationID),
      isPatient: true,
      callTimeoutMs: config.callTimeoutMs,
    });
    try {
      return new Runtime(options, { store, incarnationID }, runs);
    } catch (error) {
      // The version is computed from what the application has registered.
      await store.close();
      throw error;
    }
  }

  /** Aborts pending waits and retries, and closes the store. */
  async close(reason: Error): Promise<void> {
    this.#closing.abort();
    await this.watchers.stop(reason);
    await this.store.close();
  }

  /** A new owner token. It begins with the incarnation ID, so the tokens of a dead engine are a range. */
  newOwner(): string {
    this.#tokens += 1;
    this.#newestOwnerAt = this.clock.monotonic();
    return `${this.incarnationID}.${this.#tokens.toString(36)}`;
  }

  /** When the last owner token was made, by the monotonic clock; undefined if none was. */
  get newestOwnerAt(): number | undefined {
    return this.#newestOwnerAt;
  }

  /**
   * Retries an idempotent operation until the database is back or the runtime closes. An operation that a shutdown
   * waits for needs a signal of its own that aborts earlier, or the shutdown would hang.
   */
  retrying<T>(operation: () => Promise<T>, signal: AbortSignal = this.#closing.signal): Promise<T> {
    const { clock, logger } = this;
    return withRetry(operation, { clock, logger, signal, isIdempotent: true, isPatient: true });
  }

  memoryLimits(queueName: string): QueueLimits | undefined {
    const record = this.registry.queues.get(queueName);
    return record && limitsOf(record);
  }
}

interface Opened {
  readonly store: Store;
  readonly incarnationID: string;
}

/** Only the time and randomness of a UUIDv7: older databases have 40 characters for an owner token. */
function newIncarnationID(): string {
  const digits = newID().replaceAll('-', '');
  return digits.slice(0, 12) + digits.slice(16);
}
