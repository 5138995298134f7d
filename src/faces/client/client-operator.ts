// The operator behind a client: a connection to the system database that runs no workflows. It starts listening at the
// first wait, so that waits get notifications, and notifies engines of its changes.
import { type Clock, systemClock } from '../../kernel/base/clock.js';
import { RemoteClock } from '../../kernel/base/remote-clock.js';
import type { DLogger } from '../../kernel/base/log.js';
import type { Codec } from '../../kernel/codec/codec.js';
import type { Operator } from '../../operator/operator.js';
import { RowWatchers } from '../../operator/row-watchers.js';
import { DatabaseClosedError } from '../../kernel/errors/errors.js';
import type { Database } from '../../database/database.js';
import { withRetry } from '../../database/retry.js';
import { Store, type StoreOptions } from '../../run/writer/store.js';
import type { Bus } from '../../database/notify/bus.js';
import { ClientHandle } from './client-handle.js';

export interface ClientOperatorOptions {
  readonly store: Omit<StoreOptions, 'runMigrations' | 'acceptsDBOS' | 'isListening'>;
  readonly codec: Codec;
  readonly applicationName: string | null;
  readonly queryTimeoutMs?: number;
  readonly archive?: Operator['archive'];
  readonly clock?: Clock;
}

/** How long closing waits for an unreachable database. */
const LEAVE_MAX_MS = 5_000;

export class ClientOperator implements Operator {
  readonly clock: Clock;
  /** Its own clock: a client leaves no time limits to others. */
  readonly databaseClock: RemoteClock;
  readonly codec: Codec;
  readonly logger: DLogger;
  readonly applicationName: string | null;
  readonly queryTimeoutMs: number | undefined;
  readonly archive: Operator['archive'];
  readonly store: Store;
  readonly database: Database;
  readonly watchers: RowWatchers;
  readonly bus: Bus;
  readonly #callTimeoutMs: number;
  readonly #ending = new AbortController();
  #listening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  private constructor({ codec, applicationName, queryTimeoutMs, ...options }: ClientOperatorOptions, store: Store) {
    this.clock = options.clock ?? systemClock;
    this.databaseClock = new RemoteClock(this.clock);
    this.codec = codec;
    this.logger = options.store.logger;
    this.applicationName = applicationName;
    this.queryTimeoutMs = queryTimeoutMs;
    this.archive = options.archive;
    this.#callTimeoutMs = options.store.callTimeoutMs ?? Infinity;
    this.store = store;
    this.database = store.database;
    this.bus = store.bus;
    this.watchers = new RowWatchers({
      clock: this.clock,
      databaseClock: this.databaseClock,
      logger: this.logger,
      database: store.database,
      bus: store.bus,
      hasPush: store.hasPush,
      // Who waits for something waits for the database, too.
      retrying: (look) => this.#retrying(look, Infinity),
      whileWaiting: (begin) => this.#whileWaiting(begin()),
      isRunning: () => false,
    });
    codec.registerRecipe<ClientHandle<unknown>, { wfid: string }>({
      name: 'DBOS.WorkflowHandle',
      isApplicable: (value): value is ClientHandle<unknown> => value instanceof ClientHandle,
      serialize: (handle) => ({ wfid: handle.workflowID }),
      deserialize: ({ wfid }) => this.handleOf(wfid),
    });
  }

  static async open(options: ClientOperatorOptions): Promise<ClientOperator> {
    const { store: storeOptions, clock } = options;
    const store = await Store.open({
      ...storeOptions,
      clock,
      runMigrations: false,
      readsBesideOthers: true,
      acceptsDBOS: true,
      isListening: false,
    });
    return new ClientOperator(options, store);
  }

  /** Rejects pending waits, flushes accepted writes and messages, and closes the connections. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const reason = new DatabaseClosedError('The client was destroyed.');
    this.#ending.abort(reason);
    await this.watchers.stop(reason);
    await this.#finishWriting();
    await this.#listening;
    await this.store.close();
  }

  /** Bounded: the database may be unreachable. */
  async #finishWriting(): Promise<void> {
    const { writer } = this.store;
    const timer = this.clock.after(LEAVE_MAX_MS, () => void writer.abandon());
    try {
      await writer.close();
    } finally {
      timer.cancel();
    }
  }

  /** A handle of a workflow that may be yet to be created. */
  handleOf<R>(workflowID: string): ClientHandle<R> {
    return new ClientHandle<R>(this, workflowID, { hasExisted: false });
  }

  handleOfExisting<R>(workflowID: string): ClientHandle<R> {
    return new ClientHandle<R>(this, workflowID, { hasExisted: true });
  }

  retrying<T>(operation: () => Promise<T>): Promise<T> {
    return this.#retrying(operation, this.#callTimeoutMs);
  }

  #retrying<T>(operation: () => Promise<T>, limitMs: number): Promise<T> {
    const { clock, logger } = this;
    return withRetry(operation, { clock, logger, signal: this.#ending.signal, isIdempotent: true, limitMs });
  }

  #whileWaiting<T>(promise: Promise<T>): Promise<T> {
    if (this.#closing) return promise;
    // Not awaited: the first query is already running, and every waiter queries again once listening has started.
    this.#listening ??= this.bus.listen().catch((error: unknown) => {
      this.logger.debug(`Not listening for changes: ${String(error)}`);
    });
    return promise;
  }
}
