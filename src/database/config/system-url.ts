// Chooses an application's system database: the configured one, else one derived from the application's own database, else
// the server that PGHOST and such name, else a SQLite file named after the application. Launch and command line both use it.
import { locateDatabase } from '../../kernel/base/url.js';
import { InvalidDatabaseURLError } from '../../kernel/errors/errors.js';
import { urlsOf, editPostgresURL, parsePostgresURL } from '../postgres/postgres-url.js';

export interface SystemURLSources {
  readonly systemURL: string | undefined;
  readonly applicationURL: string | undefined;
  /** The application's name. */
  readonly name: string;
  /** The environment. */
  readonly variable?: (name: string) => string | undefined;
}

/** Characters that a file name cannot contain, or that have a meaning in a URL. */
const UNFIT_FOR_FILE_NAME = /[^\p{L}\p{N}._ -]/gu;
const DATABASE_NAME_BYTES_MAX = 63;

/** Returns a valid URL or throws. */
export function chooseSystemURL({
  systemURL,
  applicationURL,
  name,
  variable = () => undefined,
}: SystemURLSources): string {
  const fileName = `${name.replace(UNFIT_FOR_FILE_NAME, '_')}.sqlite`;
  const url =
    systemURL ??
    (applicationURL && derivedURL(applicationURL)) ??
    (postgresVariables(variable).length > 0 ? urlOfVariables(name, variable) : `sqlite:///${fileName}`);
  checkedKind(url, 'system');
  return url;
}

/** Those that are set of the variables that choose Postgres. */
export function postgresVariables(variable: (name: string) => string | undefined): string[] {
  return ['PGHOST', 'PGPORT', 'PGUSER', 'PGDATABASE'].filter((name) => variable(name) !== undefined);
}

/** The database that DBOS would use. The driver takes what the URL lacks, such as PGSSLMODE, from the environment too. */
function urlOfVariables(name: string, variable: (name: string) => string | undefined): string {
  const host = variable('PGHOST') ?? 'localhost';
  const password = variable('PGPASSWORD');
  const credentials = [variable('PGUSER') ?? 'postgres', ...(password === undefined ? [] : [password])];
  const database = name
    .toLowerCase()
    .replace(/[- ]/g, '_')
    .replace(/^(?=\d)/, '_');
  // A folder is that of a socket.
  const isFolder = host.startsWith('/');
  return (
    `postgresql://${credentials.map(encodeURIComponent).join(':')}@` +
    `${isFolder ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${variable('PGPORT') ?? '5432'}` +
    `/${encodeURIComponent(database)}_dbos_sys${isFolder ? `?host=${encodeURIComponent(host)}` : ''}`
  );
}

function derivedURL(applicationURL: string): string {
  if (checkedKind(applicationURL, 'application') === 'sqlite') return applicationURL;
  return editPostgresURL(applicationURL, (url) => {
    url.pathname += '_dbos_sys';
  });
}

/** The kind of database of a URL. Errors do not quote a malformed URL: its password may be anywhere. */
function checkedKind(url: string, role: 'system' | 'application'): 'postgres' | 'sqlite' {
  const kind = locateDatabase(url)?.kind;
  if (kind === 'sqlite') return kind;
  if (kind === undefined || !urlsOf(url).every((one) => URL.canParse(one))) {
    throw new InvalidDatabaseURLError(
      `Invalid database URL: that of the ${role} database is neither a Postgres nor a SQLite URL. ` +
        'Write postgresql://user:password@host:5432/database or sqlite:///path/app.sqlite.',
    );
  }
  const nameBytes = parsePostgresURL(url).pathname.slice(1).replace(/%../g, '_').length;
  if (nameBytes > DATABASE_NAME_BYTES_MAX) {
    throw new InvalidDatabaseURLError(
      `Invalid database URL: the name of the ${role} database has ${nameBytes} bytes, and Postgres allows only ` +
        `${DATABASE_NAME_BYTES_MAX}. Set systemDatabaseUrl to one with a shorter name.`,
    );
  }
  return kind;
}
