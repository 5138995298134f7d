// The operator behind a client: a connection to the system database that runs nothing by itself. It begins to listen
// when somebody waits for the first time, so that waiting is pushed; whoever must know of a change is notified.
import { type Clock, systemClock } from '../base/clock.js';
import type { DLogger } from '../base/log.js';
import type { Codec } from '../codec/codec.js';
import { type News, type Operator, placeText } from '../control/operator.js';
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

/** How long closing waits for a database that is away. */
const LEAVE_MAX_MS = 5_000;

export class ClientOperator implements Operator {
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
      deserialize: ({ wfid }) => new ClientHandle(this, wfid),
    });
  }

  static async open(options: ClientOperatorOptions): Promise<ClientOperator> {
    const { store: storeOptions, clock } = options;
    const store = await Store.open({ ...storeOptions, clock, runMigrations: false, isListening: false });
    return new ClientOperator(options, store);
  }

  /** Rejects whoever still waits, writes and sends what was accepted, and closes the connections. */
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

  /** While the database is away, only for so long. */
  async #finishWriting(): Promise<void> {
    const { writer } = this.store;
    const timer = this.clock.after(LEAVE_MAX_MS, () => void writer.abandon());
    try {
      await writer.close();
    } finally {
      timer.cancel();
    }
  }

  retrying<T>(operation: () => Promise<T>): Promise<T> {
    const { clock, logger } = this;
    return withRetry(operation, { clock, logger, signal: this.#ending.signal, isIdempotent: true });
  }

  #whileWaiting<T>(promise: Promise<T>): Promise<T> {
    if (this.#closing) return promise;
    // Not awaited: a first look is on its way, and everybody looks again when listening has begun.
    this.#listening ??= this.store.listener.start().catch((error: unknown) => {
      this.logger.debug(`Not listening for changes: ${String(error)}`);
    });
    return promise;
  }
}

/** News for all engines on the database, of which none is here, and for those who wait here. */
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
        // What this process has committed itself, a listener on SQLite does not notice.
        watches.onEnded(workflowID);
      }
    },
    queuesChanged: async () => listener.notify(CHANNELS.queueChanges, ''),
    schedulesChanged: async (name) => listener.notify(CHANNELS.schedules, name ?? ''),
  };
}
