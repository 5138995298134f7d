// Builds the configuration of `pg` from a Postgres URL and options.
import type pg from 'pg';
import { Hosts } from './hosts.js';
import { CONNECT_TIMEOUT_MS, PgSession, type SessionConfig } from './pg-session.js';
import { parsePostgresURL } from './postgres-url.js';

export interface ConnectionOptions {
  readonly url: string;
  readonly poolSize?: number;
  /** How long an operation waits for a connection. Default: `connect_timeout` of the URL, or 10 seconds. */
  readonly poolTimeoutMs?: number;
  readonly applicationName?: string;
  /** The URL is that of a pooler in transaction mode: no session settings, named statements or LISTEN. A store finds out. */
  readonly isTransactionPooler?: boolean;
  /** Shared by all that connect to the database, if the URL has several hosts. */
  readonly hosts?: Hosts;
}

export const POOL_SIZE = 20;
/** Longer than an idle engine pauses between two statements, or it would connect again for each. */
const IDLE_TIMEOUT_MS = 20_000;
/** How long a connection is idle before the kernel checks that its other end is there. */
const KEEPALIVE_DELAY_MS = 10_000;

/** The configuration of a pool, or of a session alone. */
export function poolConfig(options: ConnectionOptions): pg.PoolConfig & SessionConfig {
  const url = parsePostgresURL(options.url);
  const connectTimeoutMs = Number(url.searchParams.get('connect_timeout')) * 1000;
  return {
    Client: PgSession,
    hosts: options.hosts ?? Hosts.of(options.url),
    connectionString: url.toString(),
    max: options.poolSize ?? POOL_SIZE,
    connectionTimeoutMillis: options.poolTimeoutMs ?? (connectTimeoutMs > 0 ? connectTimeoutMs : CONNECT_TIMEOUT_MS),
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE_DELAY_MS,
    application_name: options.applicationName ?? 'everstep',
  };
}
