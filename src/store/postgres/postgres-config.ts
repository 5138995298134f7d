// Builds the configuration of `pg` from a Postgres URL and options.
import pg from 'pg';
import { InvalidDatabaseURLError } from '../../model/errors/database-errors.js';
import { clientFor, Hosts, hostsIn, urlsOf, withHosts } from './hosts.js';

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

const POOL_SIZE = 20;
const CONNECT_TIMEOUT_MS = 10_000;
/** How long a connection is idle before the kernel checks that its other end is there. */
const KEEPALIVE_DELAY_MS = 10_000;

/** The configuration of clients, and the class to make them of. */
export interface HostedConfig extends pg.PoolConfig {
  readonly Client: typeof pg.Client;
  /** How many hosts there are to try. */
  readonly hostCount: number;
}

export function poolConfig(options: ConnectionOptions): HostedConfig {
  const url = parsePostgresURL(options.url);
  const connectTimeoutMs = Number(url.searchParams.get('connect_timeout')) * 1000;
  const hosts = options.hosts ?? Hosts.of(options.url);
  return {
    Client: hosts ? clientFor(hosts) : pg.Client,
    hostCount: hosts?.count ?? 1,
    connectionString: url.toString(),
    max: options.poolSize ?? POOL_SIZE,
    connectionTimeoutMillis: options.poolTimeoutMs ?? (connectTimeoutMs > 0 ? connectTimeoutMs : CONNECT_TIMEOUT_MS),
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE_DELAY_MS,
    application_name: options.applicationName ?? 'everstep',
  };
}

/** Checks the URL before it is used, so that a typo is reported as such. Of several hosts, it has the first. */
export function parsePostgresURL(text: string): URL {
  let url: URL;
  try {
    url = urlsOf(text).map((one) => new URL(one))[0] as URL;
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
  const host = hostsIn(text) || url.searchParams.get('host');
  return `${host}${url.pathname}`;
}

/** Changes a URL, which keeps all its hosts. */
export function editPostgresURL(text: string, edit: (url: URL) => void): string {
  const url = parsePostgresURL(text);
  edit(url);
  return urlsOf(text).length === 1 ? url.toString() : withHosts(url.toString(), hostsIn(text));
}

const EXPECTED_FORM = 'Write it as postgresql://user:password@host:5432/database.';
