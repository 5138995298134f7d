// Notices commits of other processes on the same file. SQLite has no notifications, but `PRAGMA data_version` says
// whether another connection has committed, for the price of a look into shared memory.
import { type Clock, sleep } from '../../kernel/base/clock.js';
import type { DLogger } from '../../kernel/base/log.js';
import { Service } from '../../kernel/base/service.js';
import { type Listener, type Notification, type WakeupHandler, WakeupHandlers } from '../notify/listener.js';
import type { SqliteDatabase } from './sqlite-database.js';

export interface SqliteListenerOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  readonly intervalMs?: number;
}

const INTERVAL_MS = 20;

export class SqliteListener implements Listener {
  readonly channels: readonly string[] = [];
  readonly #database: SqliteDatabase;
  /** Commits are noticed, but only after a while. */
  readonly session = 0;
  /** Files have no session locks. */
  readonly isLockHeld = true;
  readonly #options: SqliteListenerOptions;
  readonly #handlers: WakeupHandlers;
  readonly #service: Service;
  #version: number | undefined;

  constructor(database: SqliteDatabase, options: SqliteListenerOptions) {
    this.#database = database;
    this.#options = options;
    this.#handlers = new WakeupHandlers((error) => options.logger.error(error));
    this.#service = new Service(
      (signal) => this.#watch(signal),
      (error) => options.logger.error(error),
    );
  }

  async start(): Promise<void> {
    this.#version = this.#database.dataVersion();
    this.#service.start();
  }

  stop(): Promise<void> {
    return this.#service.stop();
  }

  subscribe(handler: WakeupHandler): () => void {
    return this.#handlers.subscribe(handler);
  }

  notify(): void {
    // Other processes notice the commit itself.
  }

  afterCommit<T>(_notifications: readonly Notification[], commit: () => Promise<T>): Promise<T> {
    return commit();
  }

  async #watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(this.#options.clock, this.#options.intervalMs ?? INTERVAL_MS, signal);
      const version = this.#database.dataVersion();
      if (version === undefined || version === this.#version) continue;
      this.#version = version;
      this.#handlers.call({ kind: 'anything' });
    }
  }
}
