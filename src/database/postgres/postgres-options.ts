// How to reach a Postgres database, and the clients that follow from it.
import type pg from 'pg';
import { type Clock, systemClock } from '../../kernel/base/clock.js';
import { type DLogger, silentLogger } from '../../kernel/base/log.js';
import { type ClientSource, freshClients, pooledClients, sharedClients } from './client-source.js';
import { type ConnectionOptions, POOL_SIZE, poolConfig } from './postgres-config.js';
import { sessionLookup, type SessionOptions, sessionSetup } from './settings.js';
import { describePostgresURL, parsePostgresURL } from './postgres-url.js';
import type { Timelines } from './timelines.js';

export interface PostgresOptions extends ConnectionOptions, Omit<SessionOptions, 'urlOptions'> {
  /** The schema that holds the system tables. */
  readonly schema?: string;
  /** The caller's pool, which we never end; or `none` for a new connection per operation. */
  readonly pool?: pg.Pool | 'none';
  readonly clock?: Clock;
  /** Replaces the database clock, for tests that control time. */
  readonly now?: () => number;
  readonly logger?: DLogger;
  /** The longest message that the server takes; tests lower it. */
  readonly messageBytesMax?: number;
  /** How long a caller waits for a connection in use before it opens another one; tests choose. */
  readonly growthPauseMs?: number;
  /** How long a statement waits for an answer before the server is asked whether it is at work on it. */
  readonly silenceMs?: number;
}

/** How many connections there may be. Without a pool each operation opens one, so there should be few at a time. */
export function poolSizeOf({ pool, poolSize = POOL_SIZE }: PostgresOptions): number {
  if (pool === 'none') return 1;
  // A pool of another library that looks like one of `pg` may not say.
  return pool ? ((pool as Partial<pg.Pool>).options?.max ?? POOL_SIZE) : poolSize;
}

/** What sets up a session of ours. */
export function ownSetup(options: PostgresOptions): string {
  const urlOptions = parsePostgresURL(options.url).searchParams.get('options') ?? '';
  return options.lacking?.has('session settings') ? sessionLookup(options) : sessionSetup({ ...options, urlOptions });
}

/** The clients that the options ask for. */
export function clientSource(options: PostgresOptions, timelines: Timelines): ClientSource {
  const { clock = systemClock, logger = silentLogger, isTransactionPooler, growthPauseMs } = options;
  const shared = { clock, timelines, where: describePostgresURL(options.url) };
  if (options.pool && options.pool !== 'none')
    return sharedClients(options.pool, { ...shared, setup: sessionLookup(options) });
  const setup = isTransactionPooler ? undefined : ownSetup(options);
  if (options.pool === 'none') return freshClients(poolConfig(options), { ...shared, setup });
  return pooledClients(poolConfig(options), { ...shared, setup, growthPauseMs }, (error) => {
    logger.debug(`An idle database connection was lost: ${error.message}`);
  });
}
