// Sources of connections: our own pool, a caller's pool, or a new connection per operation. A connection that was idle for
// a while is tested before it is handed out.
import pg from 'pg';
import type { Clock } from '../../base/clock.js';
import { DBOSInitializationError } from '../../model/errors/errors.js';
import type { ConnectionUse } from '../database.js';
import type { ProtocolConnection, StatementBatch } from './statement-batch.js';

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
  /** Returns the client; a broken one is closed instead of reused. */
  release(client: Client, isBroken: boolean): void;
  end(): Promise<void>;
  /** Only with a pool. */
  use?(): ConnectionUse;
}

/** How long a pooled connection may be idle before it is tested at its next use. */
const IDLE_MAX_MS = 10_000;

/** Statements report a broken connection; this only keeps the event from crashing the process. */
const ignoreError = (): void => {};

export function pooledClients(config: pg.PoolConfig, clock: Clock, onIdleError: (error: Error) => void): ClientSource {
  const pool = new pg.Pool(config);
  pool.on('error', onIdleError);
  return { ...sharedClients(pool, clock), end: () => pool.end() };
}

/** Clients of the caller's pool, which we never end. */
export function sharedClients(pool: pg.Pool, clock: Clock): ClientSource {
  const idleSince = new WeakMap<object, number>();

  async function checkOut(): Promise<pg.PoolClient> {
    const client = await pool.connect();
    client.on('error', ignoreError);
    return client;
  }

  function checkIn(client: pg.PoolClient, isBroken: boolean): void {
    idleSince.set(client, clock.now());
    client.off('error', ignoreError);
    client.release(isBroken);
  }

  return {
    async acquire() {
      for (;;) {
        const client = await checkOut();
        const idleAt = idleSince.get(client);
        if (idleAt === undefined || clock.now() - idleAt < IDLE_MAX_MS || (await isAlive(client))) {
          return asClient(client);
        }
        checkIn(client, true);
      }
    },
    release: (client, isBroken) => checkIn(client as unknown as pg.PoolClient, isBroken),
    end: async () => {},
    use: () => ({ open: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
  };
}

/** A new connection for each operation, for external poolers and short-lived processes. */
export function freshClients(config: pg.ClientConfig): ClientSource {
  const open = new Set<Promise<void>>();
  return {
    async acquire() {
      const client = new pg.Client(config);
      client.on('error', ignoreError);
      await client.connect();
      return asClient(client);
    },
    release(client) {
      const closed: Promise<void> = (client as unknown as pg.Client).end().finally(() => open.delete(closed));
      open.add(closed);
    },
    end: async () => {
      await Promise.allSettled(open);
    },
  };
}

async function isAlive(client: pg.PoolClient): Promise<boolean> {
  try {
    await client.query('SELECT 1');
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
