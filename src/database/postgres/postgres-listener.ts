// LISTEN and NOTIFY. A dedicated connection listens; it is reopened when it breaks, and since notifications may have been
// missed by then, all subscribers look for themselves. Our own notifications are sent apart from the writes they
// announce, because NOTIFY serialises the commits that contain it: at once when there are few, batched when there are
// many.
import type { BackoffPolicy } from '../../kernel/base/backoff.js';
import type { Clock, Timer } from '../../kernel/base/clock.js';
import { deferred } from '../../kernel/base/deferred.js';
import type { DLogger } from '../../kernel/base/log.js';
import { Service } from '../../kernel/base/service.js';
import { rows, setting, type Sql, sql } from '../../kernel/sql/sql.js';
import { PAYLOAD_MAX_BYTES } from '../notify/bus.js';
import { type Listener, type Notification, type WakeupHandler, WakeupHandlers } from '../notify/listener.js';
import { keepListening, type PgSession } from './pg-session.js';
import { poolConfig } from './postgres-config.js';
import type { PostgresDatabase } from './postgres-database.js';
import { lacksAdvisoryLocks, translatePostgresError } from './postgres-errors.js';

export interface PostgresListenerOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  /** What to listen to and send on; empty for neither. */
  readonly channels: readonly string[];
  /** A session lock held for as long as the connection stands: peers see by it that this process is alive. */
  readonly sessionLock?: string;
  /** How long notifications are collected when there are many of them. */
  readonly coalesceMs?: number;
}

const COALESCE_MS = 10;
/** How long they are collected when there are few, after the last ones were sent. */
const PACE_MS = 2;
const MANY = 16;
const RECONNECT: BackoffPolicy = { firstMs: 100, maxMs: 1_000, rate: 2, jitter: 0.5 };
/** How often the connection is tested while it is quiet. */
const KEEPALIVE_MS = 30_000;
const LOCK_RETRY_MS = 300;

export class PostgresListener implements Listener {
  readonly channels: readonly string[];
  readonly #database: PostgresDatabase;
  readonly #options: PostgresListenerOptions;
  readonly #handlers: WakeupHandlers;
  readonly #service: Service;
  #pending = new Map<string, readonly [channel: string, payload: string]>();
  /** Notifications are sent, or were sent a moment ago. */
  #isPaused = false;
  #pause: Timer | undefined;
  #flushing: Promise<void> = Promise.resolve();
  #firstAttempt = deferred<void>();
  #isLocked = false;
  #sessions = 0;
  #sessionID = 0;

  constructor(database: PostgresDatabase, options: PostgresListenerOptions) {
    this.channels = options.channels;
    this.#database = database;
    this.#options = options;
    this.#handlers = new WakeupHandlers((error) => options.logger.error(error));
    this.#service = new Service(
      (signal) => this.#listen(signal),
      (error) => options.logger.error(error),
    );
  }

  /** Resolves when the first attempt to listen has succeeded or failed; a failure is retried in the background. */
  async start(): Promise<void> {
    if (!this.#isListening) return;
    this.#service.start();
    await this.#firstAttempt.promise;
  }

  /** Sends what is still to be sent, then stops listening. */
  async stop(): Promise<void> {
    await this.#flushing;
    this.#pause?.cancel();
    await this.#flush();
    this.#isPaused = false;
    await this.#service.stop();
    this.#firstAttempt = deferred<void>();
  }

  get session(): number {
    return this.#sessionID;
  }

  get isLockHeld(): boolean {
    return this.#isLocked || !this.#isListening;
  }

  get #isListening(): boolean {
    return this.#database.features.hasSessions && this.#options.channels.length > 0;
  }

  subscribe(handler: WakeupHandler): () => void {
    return this.#handlers.subscribe(handler);
  }

  notify(channel: string, payload: string, subject = payload): void {
    if (!this.#options.channels.includes(channel)) return;
    this.#pending.set(`${channel} ${subject}`, [channel, payload]);
    this.#schedule();
  }

  async afterCommit<T>(notifications: readonly Notification[], commit: (notification?: Sql) => Promise<T>): Promise<T> {
    if (this.#isPaused || !this.#isBrief(notifications)) {
      const result = await commit();
      for (const { channel, payload } of notifications) this.notify(channel, payload);
      return result;
    }
    this.#isPaused = true;
    try {
      return await commit(notifyAll(notifications.map(({ channel, payload }) => [channel, payload])));
    } finally {
      this.#pauseFor(this.#paceMs);
    }
  }

  /** Whether these fit in the commit's round trip. A pooler may send the two to different servers. */
  #isBrief(notifications: readonly Notification[]): boolean {
    if (notifications.length === 0 || notifications.length > MANY || !this.#database.features.hasSessions) return false;
    return notifications.every(
      ({ channel, payload }) => this.#options.channels.includes(channel) && isPayload(payload),
    );
  }

  /** At the end of the event loop's turn, so that what was published in it is sent together. */
  #schedule(): void {
    if (this.#isPaused || this.#pending.size === 0) return;
    this.#isPaused = true;
    this.#flushing = new Promise((resolve) => setImmediate(resolve)).then(() => this.#flushAndPause());
  }

  async #flushAndPause(): Promise<void> {
    const pauseMs = this.#pending.size > MANY ? this.#coalesceMs : this.#paceMs;
    await this.#flush();
    this.#pauseFor(pauseMs);
  }

  get #coalesceMs(): number {
    return this.#options.coalesceMs ?? COALESCE_MS;
  }

  get #paceMs(): number {
    return Math.min(this.#coalesceMs, PACE_MS);
  }

  #pauseFor(pauseMs: number): void {
    this.#pause = this.#options.clock.after(pauseMs, () => {
      this.#isPaused = false;
      this.#schedule();
    });
  }

  async #flush(): Promise<void> {
    const messages = [...this.#pending.values()].filter(([, payload]) => isPayload(payload));
    this.#pending = new Map();
    if (messages.length === 0) return;
    try {
      await this.#database.run(notifyAll(messages));
    } catch (error) {
      // A lost notification costs time, not correctness: waiters also poll.
      this.#options.logger.debug(`Notifications could not be sent: ${(error as Error).message}`);
    }
  }

  async #listen(signal: AbortSignal): Promise<void> {
    const { clock, channels, logger } = this.#options;
    const where = this.#database.where;
    const listening = keepListening(
      {
        clock,
        backoff: RECONNECT,
        channels,
        config: poolConfig(this.#database.options),
        test: (session) => this.#test(session),
        onListening: () => {
          this.#sessionID = this.#sessions += 1;
          this.#firstAttempt.resolve();
          this.#handlers.call({ kind: 'anything' });
        },
        onEnd: () => {
          this.#isLocked = false;
          this.#sessionID = 0;
        },
        onNotification: (payload, channel) => this.#handlers.call({ kind: 'message', channel, payload }),
        onFailure: (error, failures) => {
          const { message } = translatePostgresError(error, 'read', where) as Error;
          if (failures === 1) logger.warn(`Not listening for changes at the moment: ${message}`);
          this.#firstAttempt.resolve();
        },
      },
      signal,
    );
    await listening.finally(() => this.#firstAttempt.resolve());
  }

  /** The lock comes first: peers give it little time after a connection broke. */
  async #test(session: PgSession): Promise<number> {
    if (this.#sessionID === 0) await this.#database.admit(session);
    if (this.#isLocked) await session.ask('SELECT 1');
    else this.#isLocked = await this.#tryLock(session);
    return this.#isLocked ? KEEPALIVE_MS : LOCK_RETRY_MS;
  }

  /** Takes the session lock, if one is wanted. The server may hold it for a while for a connection of ours that broke. */
  async #tryLock(session: PgSession): Promise<boolean> {
    const { sessionLock } = this.#options;
    if (sessionLock === undefined) return true;
    try {
      const lock = 'SELECT pg_try_advisory_lock($1::bigint) AS locked';
      const { rows: found } = await session.ask<{ locked: boolean }>(lock, [sessionLock]);
      return found[0]?.locked === true;
    } catch (error) {
      // Peers cannot look at it either, and go by the lease.
      if (lacksAdvisoryLocks(error)) return true;
      throw error;
    }
  }
}

const NOTIFY_COLUMNS = [
  { name: 'channel', type: 'text' },
  { name: 'payload', type: 'text' },
] as const;

/** Nothing here must be durable, so the commit need not wait for the disk. */
function notifyAll(messages: readonly (readonly [channel: string, payload: string])[]): Sql {
  return sql`
    SELECT pg_notify(r.channel, r.payload), ${setting('synchronous_commit', 'off')}
    FROM ${rows('r', NOTIFY_COLUMNS, messages)}`;
}

function isPayload(payload: string): boolean {
  return Buffer.byteLength(payload) <= PAYLOAD_MAX_BYTES;
}
