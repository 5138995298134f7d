// Finds the system database and connects to it.
import { existsSync } from 'node:fs';
import { internals } from '../../kernel/base/internals.js';
import type { DLogger } from '../../kernel/base/log.js';
import { locateDatabase, withoutPasswords } from '../../kernel/base/url.js';
import { DBOSClient } from '../client/client.js';
import type { ClientOperator } from '../client/client-operator.js';
import { CONFIG_FILE, readConfigDocument } from '../../database/config/config-document.js';
import { parseYaml } from '../../database/config/yaml.js';
import { isAffectedAllowed } from '../../database/sqlite/wal-reset-bug.js';
import { chooseSystemURL } from '../../database/config/system-url.js';
import type { CommandContext } from './command.js';
import { CommandFailure, wrongUsage } from './failure.js';
import { text, type Values } from './option.js';
import { describePostgresURL } from '../../database/postgres/postgres-url.js';

export const DATABASE = {
  sysDbUrl: text('System database; defaults to DBOS_SYSTEM_DATABASE_URL, then dbos-config.yaml', {
    short: 's',
    placeholder: 'URL',
  }),
  schema: text('Schema of the system tables (Postgres)', { placeholder: 'NAME' }),
};

export const APPLICATION = {
  applicationName: text('Only this application, and what belongs to none', {
    short: 'a',
    aliases: ['app'],
    placeholder: 'NAME',
  }),
};

export interface DatabaseTarget {
  readonly url: string;
  /** Postgres only; undefined for the default schema. */
  readonly schema: string | undefined;
  /** For display, without the password. */
  readonly shown: string;
}

/** Finds the database from the options, the environment or dbos-config.yaml. */
export function findDatabase({ environment, folder }: CommandContext, given: Values<typeof DATABASE>): DatabaseTarget {
  const variable = (name: string): string | undefined => environment[name]?.trim() || undefined;
  const explicit = given.sysDbUrl ?? variable('DBOS_SYSTEM_DATABASE_URL');
  const document =
    explicit !== undefined && given.schema !== undefined
      ? undefined
      : readConfigDocument(folder, environment, parseYaml);
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
  const url = chooseSystemURL({ systemURL, applicationURL: application, name, variable });
  const schema = given.schema ?? key('system_database_schema_name') ?? key('dbos_system_schema');
  return { url, schema, shown: describeURL(url) };
}

function textUnder(key: string, value: unknown): string | undefined {
  if (value === undefined || typeof value === 'string') return value;
  throw new CommandFailure(`${CONFIG_FILE}: ${key} must be a string. Put quotes around it.`);
}

/** The database's name for display. */
export function describeURL(url: string): string {
  const location = locateDatabase(url);
  if (location?.kind === 'sqlite') return location.path;
  return location ? describePostgresURL(url) : withoutPasswords(url);
}

/** SQLite would create a file for a mistyped name. */
export function refuseMissingFile({ url, shown }: DatabaseTarget): void {
  const location = locateDatabase(url);
  if (location?.kind !== 'sqlite' || location.path === ':memory:' || existsSync(location.path)) return;
  throw new CommandFailure(
    `Database file "${shown}" not found. Correct the URL, or create it: everstep migrate --sys-db-url ${url}`,
  );
}

/** Sends the library's warnings and errors to standard error; everything with EVERSTEP_DEBUG. */
export function loggerOf({ terminal, environment }: CommandContext): DLogger {
  const log = (entry: unknown): void => {
    const message = entry instanceof Error ? entry.message : String(entry);
    terminal.printStderr(`${withoutPasswords(message)}\n`);
  };
  const logIfVerbose = environment['EVERSTEP_DEBUG'] ? log : () => {};
  return { debug: logIfVerbose, info: logIfVerbose, warn: log, error: log };
}

interface Given extends Values<typeof DATABASE> {
  readonly applicationName?: string;
}

/** Runs the body with a client for the database. Closes the client afterwards, and at once on Ctrl-C. */
export async function withClient<T>(
  context: CommandContext,
  given: Given,
  body: (internal: { readonly operator: ClientOperator }, target: DatabaseTarget, client: DBOSClient) => Promise<T>,
): Promise<T> {
  const target = findDatabase(context, given);
  refuseMissingFile(target);
  const client = await DBOSClient.create({
    systemDatabaseUrl: target.url,
    systemDatabaseSchemaName: target.schema,
    applicationName: given.applicationName,
    systemDatabasePoolSize: 4,
    allowAffectedSqlite: isAffectedAllowed(context.environment),
    logger: loggerOf(context),
  });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= client.destroy());
  const onAbort = (): void => void close();
  context.signal.addEventListener('abort', onAbort, { once: true });
  try {
    context.signal.throwIfAborted();
    return await body(client[internals], target, client);
  } finally {
    context.signal.removeEventListener('abort', onAbort);
    await close();
  }
}
