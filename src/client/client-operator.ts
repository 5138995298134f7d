// The operator behind a client: a connection to the system database that runs nothing by itself. It begins to listen
// when somebody waits for the first time, so that waiting is pushed; whoever must know of a change is notified.
import { systemClock } from '../base/clock.js';
import type { DLogger } from '../base/log.js';
import type { Codec } from '../codec/codec.js';
import { type News, type Operator, placeText } from '../control/operator.js';
import { Watches } from '../control/watches.js';
import { DatabaseClosedError } from '../model/errors.js';
import type { Database } from '../store/database.js';
import { withRetry } from '../store/retry.js';
import { Store, type StoreOptions } from '../store/store.js';
import { CHANNELS, type Listener } from '../store/wakeups.js';

export interface ClientOperatorOptions {
  readonly store: Omit<StoreOptions, 'runMigrations' | 'isListening'>;
  readonly codec: Codec;
  readonly applicationName: string | null;
  readonly queryTimeoutMs?: number;
}

export class ClientOperator implements Operator {
  readonly clock = systemClock;
  readonly codec: Codec;
  readonly logger: DLogger;
  readonly applicationName: string | null;
  readonly queryTimeoutMs: number | undefined;
  readonly store: Store;
  readonly database: Database;
  readonly watches: Watches;
  readonly news: News;
  readonly #ending = new AbortController();
  #listening: Promise<void> | undefined;

  private constructor({ codec, applicationName, queryTimeoutMs, ...options }: ClientOperatorOptions, store: Store) {
    this.codec = codec;
    this.logger = options.store.logger;
    this.applicationName = applicationName;
    this.queryTimeoutMs = queryTimeoutMs;
    this.store = store;
    this.database = store.database;
    this.news = newsBy(store.listener);
    this.watches = new Watches({
      clock: this.clock,
      logger: this.logger,
      store,
      hasPush: options.store.useListenNotify !== false && !options.store.isTransactionPooler,
      retrying: (look) => this.retrying(look),
      whileWaiting: (promise) => this.#whileWaiting(promise),
      isRunning: () => false,
    });
    store.listener.subscribe((wakeup) => this.watches.onWakeup(wakeup));
  }

  static async open(options: ClientOperatorOptions): Promise<ClientOperator> {
    const store = await Store.open({ ...options.store, runMigrations: false, isListening: false });
    return new ClientOperator(options, store);
  }

  /** Rejects whoever still waits, sends what is to be sent, and closes the connections. */
  async close(): Promise<void> {
    const reason = new DatabaseClosedError('The client was destroyed.');
    this.#ending.abort(reason);
    await this.watches.stop(reason);
    await this.#listening;
    await this.store.close();
  }

  retrying<T>(operation: () => Promise<T>): Promise<T> {
    const { clock, logger } = this;
    return withRetry(operation, { clock, logger, signal: this.#ending.signal, isIdempotent: true });
  }

  #whileWaiting<T>(promise: Promise<T>): Promise<T> {
    // Not awaited: a first look is on its way, and everybody looks again when listening has begun.
    this.#listening ??= this.store.listener.start().catch((error: unknown) => {
      this.logger.debug(`Not listening for changes: ${String(error)}`);
    });
    return promise;
  }
}

/** News for all engines on the database; there is none here. */
function newsBy(listener: Listener): News {
  return {
    queued(places) {
      for (const place of places) listener.notify(CHANNELS.queues, placeText(place));
    },
    delayed: () => listener.notify(CHANNELS.delays, ''),
    async changed(workflowIDs) {
      for (const workflowID of workflowIDs) {
        listener.notify(CHANNELS.changes, workflowID);
        listener.notify(CHANNELS.outcomes, workflowID);
      }
    },
    queuesChanged: async () => listener.notify(CHANNELS.queueChanges, ''),
    schedulesChanged: async (name) => listener.notify(CHANNELS.schedules, name ?? ''),
  };
}
