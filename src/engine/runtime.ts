// What the services and operations of an engine share: configuration, clock, database, bus, registry, owner tokens. It
// runs nothing by itself. As an operator it can carry out every verb of the control room.
import { type Clock, systemClock } from '../base/clock.js';
import { newID } from '../base/ids.js';
import type { DLogger } from '../base/log.js';
import type { Codec } from '../codec/codec.js';
import type { Operator } from '../control/operator.js';
import { RowWatchers } from '../control/runs/row-watchers.js';
import { limitsOf, type QueueLimits } from '../model/queues.js';
import type { WorkflowRecord } from '../model/records.js';
import type { Database } from '../store/database.js';
import { presenceKey } from '../store/liveness/presence.js';
import type { Bus } from '../store/notify/bus.js';
import { withRetry } from '../store/retry.js';
import { findWorkflows } from '../store/runs/workflows.js';
import { Store } from '../store/store.js';
import { applicationVersionOf } from './config/application-version.js';
import type { EngineConfig } from './config/config.js';
import type { Registry } from './registration/registry.js';
import { OwnerLookup } from './runs/owner-lookup.js';

export interface RuntimeOptions {
  readonly config: EngineConfig;
  readonly registry: Registry;
  readonly codec: Codec;
  readonly clock?: Clock;
  /** Replaces the database's clock; for tests that move time by hand. */
  readonly databaseNow?: () => number;
}

/** What the runs of this process tell the runtime. */
export interface LocalRuns {
  has(workflowID: string): boolean;
  whileWaiting<T>(promise: Promise<T>): Promise<T>;
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
  readonly applicationName: string;
  readonly applicationVersion: string;
  readonly queryTimeoutMs: number;
  /** Names this launch. */
  readonly incarnationID: string;
  /** Whether other processes can wake this one. */
  readonly hasPush: boolean;
  /** The engine around it. Typed in `engine.ts`: an engine is built of what uses a runtime. */
  engine: object | undefined;
  readonly #ending = new AbortController();
  #tokens = 0;

  private constructor({ config, registry, codec, clock }: RuntimeOptions, opened: Opened, runs: LocalRuns) {
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
    this.hasPush = config.store.useListenNotify !== false && !config.store.isTransactionPooler;
    this.owners = new OwnerLookup(store.database);
    this.watchers = new RowWatchers({
      clock: this.clock,
      logger: this.logger,
      database: this.database,
      bus: this.bus,
      hasPush: this.hasPush,
      retrying: (look) => this.retrying(look),
      whileWaiting: (promise) => runs.whileWaiting(promise),
      isRunning: (workflowID) => runs.has(workflowID),
    });
  }

  /** Opens the store. */
  static async open(options: RuntimeOptions, runs: LocalRuns): Promise<Runtime> {
    const { config, clock, databaseNow } = options;
    const incarnationID = newIncarnationID();
    const store = await Store.open({
      ...config.store,
      clock,
      now: databaseNow,
      logger: config.logger,
      sessionLock: presenceKey(incarnationID),
    });
    return new Runtime(options, { store, incarnationID }, runs);
  }

  /** Gives up pending waits and retries, and closes the store. */
  async close(reason: Error): Promise<void> {
    this.#ending.abort();
    await this.watchers.stop(reason);
    await this.store.close();
  }

  /** A fresh fencing token. It begins with the incarnation, so that the workflows of a dead engine are a range. */
  newOwner(): string {
    this.#tokens += 1;
    return `${this.incarnationID}.${this.#tokens.toString(36)}`;
  }

  /**
   * Repeats an idempotent operation until the database is back or the engine has ended. What a shutdown waits for must
   * pass a signal of its own, which aborts earlier.
   */
  retrying<T>(operation: () => Promise<T>, signal: AbortSignal = this.#ending.signal): Promise<T> {
    const { clock, logger } = this;
    return withRetry(operation, { clock, logger, signal, isIdempotent: true });
  }

  memoryLimits(queueName: string): QueueLimits | undefined {
    const record = this.registry.queues.get(queueName);
    return record && limitsOf(record);
  }

  async findWorkflow(workflowID: string): Promise<WorkflowRecord | null> {
    const [record] = await this.retrying(() => findWorkflows(this.database, [workflowID]));
    return record ?? null;
  }
}

interface Opened {
  readonly store: Store;
  readonly incarnationID: string;
}

/** Time and randomness of an ID without the rest: an owner token must fit into the 40 characters of older databases. */
function newIncarnationID(): string {
  const digits = newID().replaceAll('-', '');
  return digits.slice(0, 12) + digits.slice(16);
}
