// The operator behind a client: a connection to the system database that runs no workflows. It starts to listen on the
// first wait, so that waits are pushed, and notifies the engines concerned of every change.
import { type Clock, systemClock } from '../base/clock.js';
import type { DLogger } from '../base/log.js';
import type { Codec } from '../codec/codec.js';
import { type News, placeText } from '../control/operator.js';
import type { HandleOperator } from '../control/performer.js';
import { Watches } from '../control/runs/watches.js';
import { DatabaseClosedError } from '../model/errors/errors.js';
import type { Database } from '../store/database.js';
import { withRetry } from '../store/retry.js';
import { Store, type StoreOptions } from '../store/store.js';
import { CHANNELS, type Listener } from '../store/notify/wakeups.js';
import { ClientHandle } from './client-handle.js';

export interface ClientOperatorOptions {
  readonly store: Omit<StoreOptions, 'runMigrations' | 'isListening'>;
  readonly codec: Codec;
  readonly applicationName: string | null;
  readonly queryTimeoutMs?: number;
  readonly clock?: Clock;
}

/** How long closing waits for an unavailable database. */
const LEAVE_MAX_MS = 5_000;

export class ClientOperator implements HandleOperator {
  readonly clock: Clock;
  readonly codec: Codec;
  readonly logger: DLogger;
  readonly applicationName: string | null;
  readonly queryTimeoutMs: number | undefined;
  readonly store: Store;
  readonly database: Database;
  readonly watches: Watches;
  readonly news: News;
  /** Whether engines are notified of changes. */
  readonly isNotifying: boolean;
  readonly #ending = new AbortController();
  #listening: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  private constructor({ codec, applicationName, queryTimeoutMs, ...options }: ClientOperatorOptions, store: Store) {
    this.clock = options.clock ?? systemClock;
    this.codec = codec;
    this.logger = options.store.logger;
    this.applicationName = applicationName;
    this.queryTimeoutMs = queryTimeoutMs;
    this.store = store;
    this.database = store.database;
    this.isNotifying = options.store.useListenNotify !== false;
    this.watches = new Watches({
      clock: this.clock,
      logger: this.logger,
      store,
      hasPush: this.isNotifying && !options.store.isTransactionPooler,
      retrying: (look) => this.retrying(look),
      whileWaiting: (promise) => this.#whileWaiting(promise),
      isRunning: () => false,
    });
    this.news = newsBy(store.listener, this.watches);
    store.listener.subscribe((wakeup) => this.watches.onWakeup(wakeup));
    codec.registerRecipe<ClientHandle<unknown>, { wfid: string }>({
      name: 'DBOS.WorkflowHandle',
      isApplicable: (value): value is ClientHandle<unknown> => value instanceof ClientHandle,
      serialize: (handle) => ({ wfid: handle.workflowID }),
      deserialize: ({ wfid }) => this.handleOf(wfid),
    });
  }

  static async open(options: ClientOperatorOptions): Promise<ClientOperator> {
    const { store: storeOptions, clock } = options;
    const store = await Store.open({ ...storeOptions, clock, runMigrations: false, isListening: false });
    return new ClientOperator(options, store);
  }

  /** Rejects pending waits, writes and sends what was accepted, and closes the connections. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const reason = new DatabaseClosedError('The client was destroyed.');
    this.#ending.abort(reason);
    await this.watches.stop(reason);
    await this.#finishWriting();
    await this.#listening;
    await this.store.close();
  }

  /** Gives up after a while if the database is unavailable. */
  async #finishWriting(): Promise<void> {
    const { writer } = this.store;
    const timer = this.clock.after(LEAVE_MAX_MS, () => void writer.abandon());
    try {
      await writer.close();
    } finally {
      timer.cancel();
    }
  }

  handleOf<R>(workflowID: string): ClientHandle<R> {
    return new ClientHandle<R>(this, workflowID);
  }

  retrying<T>(operation: () => Promise<T>): Promise<T> {
    const { clock, logger } = this;
    return withRetry(operation, { clock, logger, signal: this.#ending.signal, isIdempotent: true });
  }

  #whileWaiting<T>(promise: Promise<T>): Promise<T> {
    if (this.#closing) return promise;
    // Not awaited: the first query is on its way, and every wait queries again once listening has begun.
    this.#listening ??= this.store.listener.start().catch((error: unknown) => {
      this.logger.debug(`Not listening for changes: ${String(error)}`);
    });
    return promise;
  }
}

/** Notifies all engines on the database, and the waits of this process. */
function newsBy(listener: Listener, watches: Watches): News {
  return {
    queued(places) {
      for (const place of places) listener.notify(CHANNELS.queues, placeText(place));
    },
    delayed: () => listener.notify(CHANNELS.delays, ''),
    async changed(workflowIDs) {
      for (const workflowID of workflowIDs) {
        listener.notify(CHANNELS.changes, workflowID);
        listener.notify(CHANNELS.outcomes, workflowID);
        // A listener on SQLite does not notice the commits of its own process.
        watches.onEnded(workflowID);
      }
    },
    queuesChanged: async () => listener.notify(CHANNELS.queueChanges, ''),
    schedulesChanged: async (name) => listener.notify(CHANNELS.schedules, name ?? ''),
  };
}
