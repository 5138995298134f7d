// The connections of `pg` that this package opens, for pools and alone, in every room. A session never ends the process by an
// `error` event, is closed if connecting to it fails or is refused, and does not wait long for its other end.
import pg from 'pg';
import { abortable } from '../../kernel/base/abortable.js';
import { type BackoffPolicy, backoffMs } from '../../kernel/base/backoff.js';
import { type Clock, sleep, systemClock } from '../../kernel/base/clock.js';
import { DatabaseUnavailableError } from '../../kernel/errors/database-errors.js';
import type { Hosts } from './hosts.js';

/** For statements that the server answers at once, and for closing. */
export const PROMPT_MS = 5000;
export const CONNECT_TIMEOUT_MS = 10_000;

/** A statement for a session on the user's database that listens: a role's limit for idle ones would end it. */
export const STAY_OPEN = `SELECT set_config(s.name, '0', FALSE) FROM pg_catalog.pg_settings AS s WHERE s.name = 'idle_session_timeout'`;

/** The part of a client's socket that we use. */
export interface Stream {
  readonly bytesRead: number;
  readonly writableLength: number;
  readonly destroyed?: boolean;
  destroy(): void;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

export type SessionConfig = pg.ClientConfig & {
  /** The server to connect to, if it is not that of the configuration. */
  readonly address?: Address;
  /** Those among which it is sought. */
  readonly hosts?: Hosts | undefined;
};

export class PgSession extends pg.Client {
  /** Aborts when the connection is lost or closed. */
  readonly lost: AbortSignal;
  readonly #config: SessionConfig;
  #hasConnected = false;

  constructor(given: string | SessionConfig = {}) {
    const config = typeof given === 'string' ? { connectionString: given } : given;
    super({ ...config, connectionTimeoutMillis: config.connectionTimeoutMillis || CONNECT_TIMEOUT_MS });
    this.#config = config;
    const lost = new AbortController();
    this.lost = lost.signal;
    this.on('error', (error) => lost.abort(error));
    this.on('end', () => lost.abort(new DatabaseUnavailableError('The connection was closed.')));
  }

  override connect(): Promise<pg.Client>;
  override connect(callback: ((error: Error) => void) | ((error: null, client: pg.Client) => void)): void;
  override connect(callback?: (error: never, client: pg.Client) => void): Promise<pg.Client> | void {
    const connected = this.#connect();
    if (!callback) return connected;
    const call = callback as (error?: Error, client?: pg.Client) => void;
    connected.then(
      () => call(undefined, this),
      (error: Error) => call(error),
    );
  }

  async #connect(): Promise<pg.Client> {
    const { address, hosts } = this.#config;
    try {
      await (hosts ? hosts.connect(this, this.#config) : this.connectTo(address));
      return this;
    } catch (error) {
      // A pool forgets clients that did not connect.
      await this.end();
      throw error;
    }
  }

  async connectTo(address?: Address): Promise<void> {
    // Given up meanwhile, by a pool or by `end`. It would be opened again.
    if (streamOf(this).destroyed) throw new DatabaseUnavailableError('No server was found in time.');
    // Passwords in a file are looked up by the parameters.
    const { connectionParameters } = this as unknown as { readonly connectionParameters: object };
    for (const target of [this, connectionParameters]) Object.assign(target, address);
    await super.connect();
    this.#hasConnected = true;
  }

  override end(): Promise<void>;
  override end(callback: (error: Error) => void): void;
  override end(callback?: (error: never) => void): Promise<void> | void {
    if (!this.#hasConnected) streamOf(this).destroy();
    const ended = within(PROMPT_MS, this, super.end());
    if (!callback) return ended;
    void ended.then(callback as () => void);
  }

  /** For statements that the server answers at once. The connection is cut if it does not. */
  ask<T extends Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
    limitMs = PROMPT_MS,
  ): Promise<{ readonly rows: T[] }> {
    return within(limitMs, this, this.query<T>(text, values && [...values]));
  }

  async listen(channels: readonly string[], onNotification: (payload: string, channel: string) => void): Promise<void> {
    this.on('notification', ({ channel, payload }) => onNotification(payload ?? '', channel));
    await this.ask(channels.map((channel) => `LISTEN ${this.escapeIdentifier(channel)}`).join(';'));
  }
}

/** Runs `body` on a connection of its own. An abort cuts it. */
export async function withSession<T>(
  config: string | SessionConfig,
  body: (session: PgSession) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const session = new PgSession(config);
  const cut = (): void => streamOf(session).destroy();
  signal?.addEventListener('abort', cut, { once: true });
  try {
    await session.connect();
    return await body(session);
  } finally {
    signal?.removeEventListener('abort', cut);
    await session.end();
  }
}

export interface ListenOptions {
  readonly clock: Clock;
  readonly config: SessionConfig;
  readonly channels: readonly string[];
  readonly backoff: BackoffPolicy;
  /**
   * Tests the connection, before it listens and from time to time: one that a firewall dropped fails only when it is used.
   * Returns how long until the next test.
   */
  readonly test: (session: PgSession) => Promise<number>;
  /** Notifications may have been missed until now. */
  readonly onListening: () => void;
  readonly onNotification: (payload: string, channel: string) => void;
  /** The connection is lost, or is about to be closed. */
  readonly onEnd?: () => void;
  readonly onFailure: (error: Error, failures: number) => void;
}

/** Listens until the signal aborts, on one connection after the other. Rejects with the signal's reason. */
export async function keepListening(options: ListenOptions, signal: AbortSignal): Promise<never> {
  const { clock, config, channels, backoff, test, onListening, onNotification, onEnd, onFailure } = options;
  for (let failures = 0; ;) {
    const session = new PgSession(config);
    const ended = AbortSignal.any([signal, session.lost]);
    if (onEnd) ended.addEventListener('abort', onEnd, { once: true });
    try {
      await abortable(session.connect(), signal);
      let pauseMs = await test(session);
      await session.listen(channels, onNotification);
      failures = 0;
      onListening();
      for (;;) {
        await sleep(clock, pauseMs, ended);
        pauseMs = await test(session);
      }
    } catch (error) {
      failures += 1;
      if (!signal.aborted) onFailure(error as Error, failures);
    } finally {
      await session.end();
    }
    await sleep(clock, backoffMs(backoff, failures), signal);
  }
}

export function streamOf(client: pg.ClientBase): Stream {
  // Not in the types of `pg`; `asClient` checks that it is there.
  return (client as unknown as { readonly connection: { readonly stream: Stream } }).connection.stream;
}

/** Waits for an answer, and cuts the connection if there is none within the limit. */
export async function within<T>(limitMs: number, client: pg.ClientBase, answer: Promise<T>): Promise<T> {
  const timer = systemClock.after(limitMs, () => streamOf(client).destroy());
  try {
    return await answer;
  } finally {
    timer.cancel();
  }
}
