// Builds the configuration of `pg` from a Postgres URL and options.
import type pg from 'pg';
import { InvalidDatabaseURLError } from '../../model/errors/database-errors.js';

export interface ConnectionOptions {
  readonly url: string;
  readonly poolSize?: number;
  readonly applicationName?: string;
  /** Ends sessions that are idle in a transaction for this long; 0 keeps the server's setting. */
  readonly idleTransactionTimeoutMs?: number;
  /** The URL is that of a pooler in transaction mode: no session settings, named statements or LISTEN. */
  readonly isTransactionPooler?: boolean;
}

const POOL_SIZE = 20;
const CONNECT_TIMEOUT_MS = 10_000;
const IDLE_TRANSACTION_TIMEOUT_MS = 60_000;

/**
 * All our statements are small index lookups. A plan made while a table was tiny would scan it, and the server keeps the
 * plan of a prepared statement long after the table has grown.
 */
const SESSION_SETTINGS = {
  // Our statements are too small to compile, but the costs of disabled nodes would make the server try.
  jit: 'off',
  enable_seqscan: 'off',
  // A bitmap scan reads the whole backlog before it returns the first row.
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_material: 'off',
  // Work waits for the database; a role's limit for interactive statements must not fail it.
  statement_timeout: 0,
  // After waiting for an advisory lock, a statement must see what earlier holders committed.
  default_transaction_isolation: 'read\\ committed',
  // Disables the trigger on messages for our own: we notify outside their commit.
  'everstep.quiet': 'on',
} as const;

export function poolConfig(options: ConnectionOptions): pg.PoolConfig {
  const url = parsePostgresURL(options.url);
  const givenOptions = url.searchParams.get('options') ?? '';
  const connectTimeoutSeconds = Number(url.searchParams.get('connect_timeout'));
  url.searchParams.delete('options');
  return {
    connectionString: url.toString(),
    max: options.poolSize ?? POOL_SIZE,
    connectionTimeoutMillis: connectTimeoutSeconds > 0 ? connectTimeoutSeconds * 1000 : CONNECT_TIMEOUT_MS,
    keepAlive: true,
    application_name: options.applicationName ?? 'everstep',
    options: options.isTransactionPooler ? givenOptions : `${sessionOptions(options)} ${givenOptions}`.trim(),
  };
}

/** Session settings in startup options. Later ones win, so the URL's come last. */
function sessionOptions(options: ConnectionOptions): string {
  const idleTransactionTimeoutMs = options.idleTransactionTimeoutMs ?? IDLE_TRANSACTION_TIMEOUT_MS;
  const settings = Object.entries<string | number>(SESSION_SETTINGS);
  if (idleTransactionTimeoutMs > 0) settings.push(['idle_in_transaction_session_timeout', idleTransactionTimeoutMs]);
  return settings.map(([name, value]) => `-c ${name}=${value}`).join(' ');
}

/** Checks the URL before it is used, so that a typo is reported as such. */
export function parsePostgresURL(text: string): URL {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    // Do not quote the URL or keep the parser's error, which repeats it: the password may be anywhere.
    throw new InvalidDatabaseURLError(`Invalid database URL: it cannot be parsed. ${EXPECTED_FORM}`);
  }
  const missing = [
    url.username === '' && !url.searchParams.has('user') ? 'username' : '',
    url.hostname === '' && !url.searchParams.has('host') ? 'hostname' : '',
    url.pathname.length < 2 ? 'database name' : '',
  ].filter((field) => field !== '');
  if (missing.length > 0) {
    throw new InvalidDatabaseURLError(
      `Invalid database URL: missing required field(s): ${missing.join(', ')}. ${EXPECTED_FORM}`,
    );
  }
  return url;
}

/** The database for logs and errors: host, port and name, never the password. */
export function describePostgresURL(text: string): string {
  const url = parsePostgresURL(text);
  const host = url.hostname || url.searchParams.get('host');
  return `${host}${url.port === '' ? '' : `:${url.port}`}${url.pathname}`;
}

const EXPECTED_FORM = 'Write it as postgresql://user:password@host:5432/database.';
