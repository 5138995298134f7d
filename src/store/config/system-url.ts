// Which system database an application uses: the one that is named, else one derived from the application's own, else a
// SQLite file of the application's name. Launch and command line agree on it because both ask here.
import { locateDatabase } from '../../base/url.js';
import { InvalidDatabaseURLError } from '../../model/errors/errors.js';
import { parsePostgresURL } from '../postgres/postgres-config.js';

export interface SystemURLSources {
  readonly systemURL: string | undefined;
  readonly applicationURL: string | undefined;
  /** The name of the application. */
  readonly name: string;
}

/** What a file name cannot hold, or a URL would take for something else. */
const UNFIT_FOR_FILE_NAME = /[^\p{L}\p{N}._ -]/gu;
const DATABASE_NAME_BYTES_MAX = 63;

/** The URL, checked. */
export function chooseSystemURL({ systemURL, applicationURL, name }: SystemURLSources): string {
  const fileName = `${name.replace(UNFIT_FOR_FILE_NAME, '_')}.sqlite`;
  const url = systemURL ?? (applicationURL && derivedURL(applicationURL)) ?? `sqlite:///${fileName}`;
  checkedKind(url, 'system');
  return url;
}

function derivedURL(applicationURL: string): string {
  if (checkedKind(applicationURL, 'application') === 'sqlite') return applicationURL;
  const url = parsePostgresURL(applicationURL);
  url.pathname += '_dbos_sys';
  return url.toString();
}

/** The kind of database behind a URL. No error quotes a URL that is malformed: its password may be anywhere. */
function checkedKind(url: string, role: 'system' | 'application'): 'postgres' | 'sqlite' {
  const kind = locateDatabase(url)?.kind;
  if (kind === 'sqlite') return kind;
  if (kind === undefined || !URL.canParse(url)) {
    throw new InvalidDatabaseURLError(
      `Invalid database URL: that of the ${role} database is neither of Postgres nor of SQLite. ` +
        'Write postgresql://user:password@host:5432/database or sqlite:///path/app.sqlite.',
    );
  }
  const nameBytes = parsePostgresURL(url).pathname.slice(1).replace(/%../g, '_').length;
  if (nameBytes > DATABASE_NAME_BYTES_MAX) {
    throw new InvalidDatabaseURLError(
      `Invalid database URL: the name of the ${role} database has ${nameBytes} bytes, and Postgres keeps only ` +
        `${DATABASE_NAME_BYTES_MAX}. Set systemDatabaseUrl to one with a shorter name.`,
    );
  }
  return kind;
}
