// Which database a command works on, and the connection to it.
import { existsSync } from 'node:fs';
import { internals } from '../base/internals.js';
import type { DLogger } from '../base/log.js';
import { locateDatabase, withoutPasswords } from '../base/url.js';
import { DBOSClient } from '../client/client.js';
import type { ClientOperator } from '../client/client-operator.js';
import { CONFIG_FILE, readConfigDocument } from '../store/config/config-document.js';
import { describePostgresURL } from '../store/postgres/postgres-config.js';
import { chooseSystemURL } from '../store/config/system-url.js';
import type { Scene } from './command.js';
import { CommandFailure, wrongUsage } from './failure.js';
import { text, type Values } from './option.js';

export const DATABASE = {
  sysDbUrl: text('The system database; else DBOS_SYSTEM_DATABASE_URL, else dbos-config.yaml', {
    short: 's',
    placeholder: 'URL',
  }),
  schema: text('The schema of the system tables, on Postgres', { placeholder: 'NAME' }),
};

export const APPLICATION = {
  applicationName: text('Only what belongs to this application, or to none', {
    short: 'a',
    aliases: ['app'],
    placeholder: 'NAME',
  }),
};

export interface DatabaseTarget {
  readonly url: string;
  /** On Postgres; the default one if undefined. */
  readonly schema: string | undefined;
  /** For people: no password. */
  readonly shown: string;
}

/** The database that the options, the environment or dbos-config.yaml name. */
export function findDatabase({ environment, folder }: Scene, given: Values<typeof DATABASE>): DatabaseTarget {
  const variable = (name: string): string | undefined => environment[name]?.trim() || undefined;
  const explicit = given.sysDbUrl ?? variable('DBOS_SYSTEM_DATABASE_URL');
  const document =
    explicit !== undefined && given.schema !== undefined ? undefined : readConfigDocument(folder, environment);
  const key = (name: string): string | undefined => textUnder(name, document?.find(name));
  const application = variable('DBOS_DATABASE_URL') ?? key('database_url');
  const systemURL = explicit ?? key('system_database_url');
  if (systemURL === undefined && application === undefined && document === undefined) {
    throw wrongUsage(
      'No system database. Pass --sys-db-url, set DBOS_SYSTEM_DATABASE_URL, ' +
        `or add a ${CONFIG_FILE} to this folder.`,
    );
  }
  const name = textUnder('name', document?.name) ?? '';
  if (systemURL === undefined && application === undefined && name === '') {
    throw wrongUsage(`${CONFIG_FILE} has neither system_database_url nor name. Add one, or pass --sys-db-url.`);
  }
  const url = chooseSystemURL({ systemURL, applicationURL: application, name });
  const schema = given.schema ?? key('system_database_schema_name') ?? key('dbos_system_schema');
  return { url, schema, shown: describeURL(url) };
}

function textUnder(key: string, value: unknown): string | undefined {
  if (value === undefined || typeof value === 'string') return value;
  throw new CommandFailure(`${CONFIG_FILE}: ${key} must be a string. Put quotes around it.`);
}

/** Names the database for people. */
export function describeURL(url: string): string {
  const location = locateDatabase(url);
  if (location?.kind === 'sqlite') return location.path;
  return location ? describePostgresURL(url) : withoutPasswords(url);
}

/** SQLite would make a new file of a name that was mistyped. */
export function refuseMissingFile({ url, shown }: DatabaseTarget): void {
  const location = locateDatabase(url);
  if (location?.kind !== 'sqlite' || location.path === ':memory:' || existsSync(location.path)) return;
  throw new CommandFailure(
    `Database file "${shown}" not found. Correct the URL, or create it: everstep migrate --sys-db-url ${url}`,
  );
}

/** What the library has to say goes to standard error, if it is worth a line. */
export function loggerOf({ terminal, environment }: Scene): DLogger {
  const tell = (entry: unknown): void => {
    const message = entry instanceof Error ? entry.message : String(entry);
    terminal.tell(`${withoutPasswords(message)}\n`);
  };
  const tellIfVerbose = environment['EVERSTEP_DEBUG'] ? tell : () => {};
  return { debug: tellIfVerbose, info: tellIfVerbose, warn: tell, error: tell };
}

interface Given extends Values<typeof DATABASE> {
  readonly applicationName?: string;
}

/** Does something with a client of the database, and closes it in any case. Ctrl-C closes it as well. */
export async function withClient<T>(
  scene: Scene,
  given: Given,
  body: (client: { readonly operator: ClientOperator }, target: DatabaseTarget) => Promise<T>,
): Promise<T> {
  const target = findDatabase(scene, given);
  refuseMissingFile(target);
  const client = await DBOSClient.create({
    systemDatabaseUrl: target.url,
    systemDatabaseSchemaName: target.schema,
    applicationName: given.applicationName,
    systemDatabasePoolSize: 4,
    logger: loggerOf(scene),
  });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= client.destroy());
  const onAbort = (): void => void close();
  scene.signal.addEventListener('abort', onAbort, { once: true });
  try {
    scene.signal.throwIfAborted();
    return await body(client[internals], target);
  } finally {
    scene.signal.removeEventListener('abort', onAbort);
    await close();
  }
}
