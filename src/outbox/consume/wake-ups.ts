// Wakes consumers when there may be new messages. On Postgres a connection listens for the notifications that publishers
// send with their commits. On SQLite commits of other processes are noticed by the version of the data.
import pg from 'pg';
import { type BackoffPolicy, backoffMs } from '../../base/backoff.js';
import { type Clock, sleep } from '../../base/clock.js';
import { deferred } from '../../base/deferred.js';
import type { DLogger } from '../../base/log.js';
import { Service } from '../../base/service.js';
import { DatabaseUnavailableError } from '../../model/errors/errors.js';
import { quoteIdentifier } from '../../sql/sql.js';
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
      (signal) => (isSqlite ? this.#watchVersion(signal) : this.#listenForEver(signal)),
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

  async #listenForEver(signal: AbortSignal): Promise<void> {
    const { clock, logger, channel } = this.#options;
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        await this.#listen(signal, () => (failures = 0));
      } catch (error) {
        if (signal.aborted) return;
        if (failures === 1)
          logger.warn(`The outbox polls: it cannot listen on "${channel}": ${(error as Error).message}`);
        await sleep(clock, backoffMs(RECONNECT, failures), signal);
      }
    }
  }

  /** Until the connection is lost or the signal aborts. */
  async #listen(signal: AbortSignal, onConnected: () => void): Promise<void> {
    const { clock, channel, listenConfig, wake } = this.#options;
    const client = new pg.Client(listenConfig);
    const lost = deferred<never>();
    // Awaited below; if connecting fails first, nothing else waits for it.
    lost.promise.catch(() => {});
    client.on('error', (error) => lost.reject(error));
    client.on('end', () => lost.reject(new DatabaseUnavailableError('The listening connection was closed.')));
    client.on('notification', ({ payload }) => wake(payload));
    const stop = (): void => lost.reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    try {
      await Promise.race([client.connect(), lost.promise]);
      await Promise.race([client.query(`LISTEN ${quoteIdentifier(channel)}`), lost.promise]);
      onConnected();
      // Notifications may have been missed.
      wake();
      for (;;) {
        await Promise.race([sleep(clock, PROBE_MS, signal), lost.promise]);
        await Promise.race([client.query('SELECT 1'), lost.promise]);
      }
    } finally {
      signal.removeEventListener('abort', stop);
      await client.end().catch(() => {
        // It is lost.
      });
    }
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
