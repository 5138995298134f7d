// Sources of connections: our own pool, a caller's pool, or a new connection per operation. A new connection is set up before
// it is handed out, and one that was idle for a while is tested.
import pg from 'pg';
import { type Clock, elapsedSince, type Moment, momentOf, systemClock, type Timer } from '../../kernel/base/clock.js';
import { deferred } from '../../kernel/base/deferred.js';
import { DatabaseAccessError, DatabaseUnavailableError, DBOSInitializationError } from '../../kernel/errors/errors.js';
import type { ConnectionUse } from '../database.js';
import { PgSession, PROMPT_MS, type SessionConfig, within } from './pg-session.js';
import type { ProtocolConnection, StatementBatch } from './statement-batch.js';
import type { Timelines } from './timelines.js';

/** A `pg` client as we use it. */
export interface Client {
  readonly connection: ProtocolConnection;
  query(text: string): Promise<unknown>;
  query(batch: StatementBatch): unknown;
  on(event: string, listener: (...args: never[]) => void): unknown;
  off(event: string, listener: (...args: never[]) => void): unknown;
}

export interface ClientSource {
  acquire(): Promise<Client>;
  /** The server's process behind an acquired client; undefined if it is unknown. */
  backendOf(client: Client): number | undefined;
  /** The server when the connection was made, as `Timelines` take it. */
  serverOf(client: Client): string | null;
  /** Returns the client; a broken one is closed instead of reused. */
  release(client: Client, isBroken: boolean): void;
  end(): Promise<void>;
  /** Only with a pool. */
  use?(): ConnectionUse;
}

export interface SourceOptions {
  readonly clock: Clock;
  /** Sets up a new session and returns its `backend` and `server`. Undefined if there are no sessions, as behind a transaction pooler. */
  readonly setup: string | undefined;
  readonly where: string;
  readonly timelines: Timelines;
  /** How long a caller waits for a connection in use before it opens another one in our own pool. */
  readonly growthPauseMs?: number;
}

/** About as long as it takes to connect. */
const GROWTH_PAUSE_MS = 10;

/** How long a pooled connection may be idle before it is tested at its next use. */
const IDLE_MAX_MS = 20_000;

/** Statements report a broken connection; this only keeps the event from crashing the process. */
const ignoreError = (): void => {};

export function pooledClients(
  config: pg.PoolConfig & SessionConfig,
  options: SourceOptions,
  onIdleError: (error: Error) => void,
): ClientSource {
  const pool = new pg.Pool(config);
  const open = new Set<pg.PoolClient>();
  pool.on('error', onIdleError);
  pool.on('connect', (client) => {
    open.add(client);
    client.once('end', () => open.delete(client));
  });
  return {
    ...clientsOf(pool, {
      ...options,
      hasHosts: config.hosts !== undefined,
      growth: new PoolGrowth(pool, options.growthPauseMs ?? GROWTH_PAUSE_MS),
    }),
    async end() {
      await pool.end();
      // The pool does not wait for those that are closing.
      await Promise.all([...open].map((client) => client.end()));
    },
  };
}

/** Clients of the caller's pool, which we never end. */
export function sharedClients(pool: pg.Pool, options: SourceOptions): ClientSource {
  return clientsOf(pool, options);
}

interface PoolOptions extends SourceOptions {
  readonly growth?: PoolGrowth;
  readonly hasHosts?: boolean;
}

function clientsOf(pool: pg.Pool, options: PoolOptions): ClientSource {
  const { clock, hasHosts = false, growth } = options;
  const take = (): Promise<pg.PoolClient> => rerouted(hasHosts, () => checkOut(pool));
  const idleSince = new WeakMap<object, { readonly moment: Moment; readonly losses: number }>();
  const sessions = new WeakMap<object, Session>();
  let losses = 0;

  function checkIn(client: pg.PoolClient, isBroken: boolean): void {
    idleSince.set(client, { moment: momentOf(clock), losses });
    client.off('error', ignoreError);
    client.release(isBroken);
    growth?.returned();
  }

  async function isUsable(client: pg.PoolClient): Promise<boolean> {
    const session = sessions.get(client);
    if (!session) {
      sessions.set(client, await setUp(client, options));
      return true;
    }
    if (options.timelines.isFormer(session.server)) return false;
    const idle = idleSince.get(client);
    if (idle === undefined) return true;
    // When one connection is lost, others were too, and would have to fall silent one after the other.
    if (idle.losses < losses) return false;
    return elapsedSince(clock, idle.moment) < IDLE_MAX_MS || (await isAlive(client));
  }

  return {
    async acquire() {
      for (;;) {
        const client = await (growth ? growth.take(take) : take());
        try {
          const usable = asClient(client);
          if (await isUsable(client)) return usable;
        } catch (error) {
          checkIn(client, true);
          throw error;
        }
        checkIn(client, true);
      }
    },
    backendOf: (client) => sessions.get(client)?.backend,
    serverOf: (client) => sessions.get(client)?.server ?? null,
    release(client, isBroken) {
      if (isBroken) losses += 1;
      checkIn(client as unknown as pg.PoolClient, isBroken);
    },
    end: async () => {},
    use: () => ({ open: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
  };
}

/** After a failure at one of several hosts, the next connection seeks the right one. */
function rerouted<T>(hasHosts: boolean, connect: () => Promise<T>): Promise<T> {
  return hasHosts ? connect().catch(connect) : connect();
}

/**
 * Listens for errors in the same turn in which the pool hands out the client and stops listening itself. The server may have
 * ended the session by then, and an error without a listener ends the process.
 */
function checkOut(pool: pg.Pool): Promise<pg.PoolClient> {
  return new Promise((resolve, reject) => {
    pool.connect((error, client) => {
      if (!client) return reject(error ?? new DatabaseUnavailableError('The pool handed out no client.'));
      client.on('error', ignoreError);
      resolve(client);
    });
  });
}

/** A new connection for each operation, for external poolers and short-lived processes. */
export function freshClients(config: SessionConfig, options: SetupOptions): ClientSource {
  const open = new Set<Promise<void>>();
  const sessions = new WeakMap<object, Session>();

  async function connectOne(): Promise<Client> {
    const client = new PgSession(config);
    await client.connect();
    try {
      sessions.set(client, await setUp(client, options));
      return asClient(client);
    } catch (error) {
      close(client);
      throw error;
    }
  }

  function close(client: pg.Client): void {
    const closed: Promise<void> = client.end().finally(() => open.delete(closed));
    open.add(closed);
  }

  return {
    acquire: () => rerouted(config.hosts !== undefined, connectOne),
    backendOf: (client) => sessions.get(client)?.backend,
    serverOf: (client) => sessions.get(client)?.server ?? null,
    release: (client) => close(client as unknown as pg.Client),
    end: async () => {
      await Promise.allSettled(open);
    },
  };
}

type SetupOptions = Pick<SourceOptions, 'setup' | 'timelines' | 'where'>;

interface Session {
  readonly backend: number | undefined;
  readonly server: string | null;
  readonly is_without_triggers?: boolean | null;
}

/** Throws if the server must not be written to. */
export async function setUp(client: pg.ClientBase, { setup, timelines, where }: SetupOptions): Promise<Session> {
  if (setup === undefined) return { backend: undefined, server: null };
  const { rows } = await within(PROMPT_MS, client, client.query<Session>(setup));
  const [session = { backend: undefined, server: null }] = rows;
  timelines.see(session.server, where);
  if (session.is_without_triggers) {
    throw new DatabaseAccessError(
      `Sessions on Postgres at ${where} have session_replication_role = replica, which turns off the triggers that ` +
        'Everstep relies on. Remove the setting from the role, the database or the pool.',
    );
  }
  return session;
}

async function isAlive(client: pg.PoolClient): Promise<boolean> {
  try {
    await within(PROMPT_MS, client, client.query('SELECT 1'));
    return true;
  } catch {
    // Whatever the reason, the connection is unusable; the caller takes another one.
    return false;
  }
}

function asClient(client: pg.ClientBase): Client {
  const candidate = client as unknown as Client & { pipeline?: boolean };
  if (typeof candidate.connection?.bind !== 'function' || candidate.pipeline === true) {
    throw new DBOSInitializationError(
      'Unsupported pool: it uses pg-native or pipeline mode. Pass an ordinary pg.Pool.',
    );
  }
  return candidate;
}

/** The part of a pool that counts. */
interface GrowingPool {
  readonly totalCount: number;
  readonly idleCount: number;
  readonly options: { readonly max?: number };
}

/**
 * Keeps a pool small. While all of its connections are in use, a caller waits a moment for one to be returned before it opens
 * another: to connect takes longer than most statements. Without this, the services of a launch open one each.
 */
class PoolGrowth {
  readonly #pool: GrowingPool;
  readonly #pauseMs: number;
  readonly #waiters: (() => void)[] = [];
  /** Callers that may take a connection and have not got it yet. */
  #taking = 0;
  #timer: Timer | undefined;

  constructor(pool: GrowingPool, pauseMs: number) {
    this.#pool = pool;
    this.#pauseMs = pauseMs;
  }

  /** Takes a connection when there is one, or when it is time to open another. */
  async take<T>(connect: () => Promise<T>): Promise<T> {
    if (this.#waiters.length === 0 && this.#mayTake) this.#taking += 1;
    else await this.#wait();
    try {
      return await connect();
    } finally {
      this.#taking -= 1;
    }
  }

  /** A connection was returned or closed. */
  returned(): void {
    if (this.#waiters.length > 0) this.#admit();
  }

  get #mayTake(): boolean {
    const { idleCount, totalCount } = this.#pool;
    return idleCount > this.#taking || totalCount + this.#taking === 0 || this.#isFull;
  }

  /** Then the pool has a queue of its own. */
  get #isFull(): boolean {
    const { totalCount, options } = this.#pool;
    return totalCount >= (options.max ?? Infinity);
  }

  #wait(): Promise<void> {
    const admitted = deferred<void>();
    this.#waiters.push(() => admitted.resolve());
    this.#arm();
    return admitted.promise;
  }

  #admit(): void {
    this.#taking += 1;
    this.#waiters.shift()?.();
    if (this.#waiters.length > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /**
   * Opens one at a time, as long as callers wait, however short their waits are: where many wait all the time, more
   * connections help. By the system's clock: connections are in use for real time, even if a test has a
   * clock of its own.
   */
  #arm(): void {
    this.#timer ??= systemClock.after(this.#pauseMs, () => {
      this.#timer = undefined;
      if (this.#waiters.length > 0) this.#admit();
      while (this.#waiters.length > 0 && this.#isFull) this.#admit();
      if (this.#waiters.length > 0) this.#arm();
    });
  }
}
