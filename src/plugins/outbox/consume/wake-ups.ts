// Wakes consumers when there may be new messages. On Postgres a connection listens for the notifications that publishers
// send with their commits. On SQLite commits of other processes are noticed by the version of the data.
import type pg from 'pg';
import type { BackoffPolicy } from '../../../kernel/base/backoff.js';
import { type Clock, sleep } from '../../../kernel/base/clock.js';
import type { DLogger } from '../../../kernel/base/log.js';
import { Service } from '../../../kernel/base/service.js';
import { keepListening, STAY_OPEN } from '../../../database/postgres/pg-session.js';
import type { OutboxDatabase } from '../database.js';

export interface WakeUpOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  readonly database: OutboxDatabase;
  readonly channel: string;
  /** How to connect for notifications. */
  readonly listenConfig: pg.ClientConfig | undefined;
  /** Without a queue: anything may have changed. */
  readonly wake: (queue?: string) => void;
}

const RECONNECT: BackoffPolicy = { firstMs: 100, maxMs: 30_000, rate: 2, jitter: 0.5 };
const SQLITE_POLL_MS = 50;
/** A connection that was cut without a word is noticed by this. */
const PROBE_MS = 30_000;

export class WakeUps {
  readonly #options: WakeUpOptions;
  readonly #service: Service;

  constructor(options: WakeUpOptions) {
    this.#options = options;
    const isSqlite = options.database.driver.dialect === 'sqlite';
    this.#service = new Service(
      (signal) => (isSqlite ? this.#watchVersion(signal) : this.#listen(signal)),
      (error) => options.logger.error(error),
    );
  }

  start(): void {
    const { database, listenConfig } = this.#options;
    if (database.driver.dialect === 'sqlite' || listenConfig) this.#service.start();
  }

  stop(): Promise<void> {
    return this.#service.stop();
  }

  #listen(signal: AbortSignal): Promise<void> {
    const { clock, logger, channel, listenConfig, wake } = this.#options;
    return keepListening(
      {
        clock,
        backoff: RECONNECT,
        channels: [channel],
        config: listenConfig ?? {},
        async test(session) {
          await session.ask(STAY_OPEN);
          return PROBE_MS;
        },
        onListening: () => wake(),
        onNotification: (payload) => wake(payload),
        onFailure({ message }, failures) {
          if (failures === 1) logger.warn(`The outbox polls: it cannot listen on "${channel}": ${message}`);
        },
      },
      signal,
    );
  }

  async #watchVersion(signal: AbortSignal): Promise<void> {
    const { clock, database, wake } = this.#options;
    let last: unknown;
    for (;;) {
      await sleep(clock, SQLITE_POLL_MS, signal);
      const version = await database
        .transact((tx) => tx.exec('PRAGMA data_version'), { readOnly: true })
        .then(
          ([row]) => row?.['data_version'],
          // Busy; the next look will tell.
          () => last,
        );
      if (last !== undefined && version !== last) wake();
      last = version;
    }
  }
}
