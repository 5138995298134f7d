// URLs of Postgres databases, which may have several hosts. Without `pg`, which takes long to load.
import { InvalidDatabaseURLError } from '../../kernel/errors/database-errors.js';

/** Scheme, user and password; hosts; the rest. */
const PARTS = /^([a-z]+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/is;

/** The URL for each of its hosts. */
export function urlsOf(text: string): [string, ...string[]] {
  const [, head = '', hosts = '', rest = ''] = PARTS.exec(text) ?? [];
  const [first, ...others] = hosts.split(',');
  if (others.length === 0) return [text];
  const urlOf = (host: string | undefined): string => `${head}${host}${rest}`;
  return [urlOf(first), ...others.map(urlOf)];
}

/** The hosts as they stand in the URL. */
export function hostsIn(text: string): string {
  return PARTS.exec(text)?.[2] ?? '';
}

/** Puts several hosts in the place of the one in a URL. */
export function withHosts(url: string, hosts: string): string {
  return url.replace(PARTS, (_, head: string, __, rest: string) => `${head}${hosts}${rest}`);
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
