// Finds the database of an outbox, which is the user's own and not the system database, and connects to it.
import type pg from 'pg';
import { internals } from '../../kernel/base/internals.js';
import { locateDatabase } from '../../kernel/base/url.js';
import type { OutboxDataSource } from './database.js';
import type { OutboxBroker } from './outbox-broker.js';
import type { OutboxOptions } from './outbox-options.js';
import { makeDlqTable, makeOutboxTable, makeStateTable } from './schema/tables.js';
import { CONFIG_FILE, readConfigDocument } from '../../database/config/config-document.js';
import { parseYaml } from '../../database/config/yaml.js';
import { findSqliteLibrary, type SqliteHandle, toBindValue } from '../../database/sqlite/sqlite-handle.js';
import type { CommandContext } from '../../faces/cli/command.js';
import { type DatabaseTarget, describeURL, refuseMissingFile } from '../../faces/cli/connection.js';
import { CommandFailure, wrongUsage } from '../../faces/cli/failure.js';
import { choice, repeatable, text, type Values, withDefault } from '../../faces/cli/option.js';
import { PgSession } from '../../database/postgres/pg-session.js';
import { parsePostgresURL } from '../../database/postgres/postgres-url.js';

export const OUTBOX_TABLES = {
  table: withDefault(text('Table of the messages', { placeholder: 'NAME' }), 'outbox'),
  dlqTable: withDefault(text('Table of the dead letters', { placeholder: 'NAME' }), 'outbox_dlq'),
  stateTable: withDefault(text('Table of paused topics and remembered keys', { placeholder: 'NAME' }), 'outbox_state'),
  schema: text('Schema of the tables (Postgres); defaults to the search path', { placeholder: 'NAME' }),
};

export const OUTBOX = {
  dbUrl: text("Your application's database; defaults to DBOS_DATABASE_URL, then database_url in dbos-config.yaml", {
    short: 'd',
    placeholder: 'URL',
  }),
  ...OUTBOX_TABLES,
};

const OPTIONAL_TABLES = ['dlq', 'state'] as const;
export const WITHOUT = {
  without: repeatable(
    choice('Leave out a table that you do not use: dlq or state', OPTIONAL_TABLES, { placeholder: 'TABLE' }),
  ),
};

type Driver = OutboxDataSource[typeof internals]['driver'];

interface TableOptions extends Values<typeof OUTBOX_TABLES> {
  readonly without?: readonly (typeof OPTIONAL_TABLES)[number][];
}

/** The declared tables. */
export function tablesOf({ table, dlqTable, stateTable, schema, without = [] }: TableOptions) {
  return {
    outboxTable: makeOutboxTable({ tableName: table, schema }),
    dlqTable: without.includes('dlq') ? undefined : makeDlqTable({ tableName: dlqTable, schema }),
    stateTable: without.includes('state') ? undefined : makeStateTable({ tableName: stateTable, schema }),
  };
}

export function findOutboxDatabase(
  { environment, folder }: CommandContext,
  given: string | undefined,
): DatabaseTarget | undefined {
  const configured = (): unknown => readConfigDocument(folder, environment, parseYaml)?.find('database_url');
  const url = given ?? (environment['DBOS_DATABASE_URL']?.trim() || undefined) ?? configured();
  if (url === undefined) return undefined;
  if (typeof url !== 'string') throw new CommandFailure(`${CONFIG_FILE}: database_url must be a string.`);
  return { url, schema: undefined, shown: describeURL(url) };
}

interface Given extends TableOptions {
  readonly dbUrl?: string;
}

/** Runs the body with an outbox on the user's database. Closes the connection afterwards, and at once on Ctrl-C. */
export async function withOutbox<T>(
  context: CommandContext,
  given: Given,
  body: (outbox: OutboxBroker, target: DatabaseTarget) => Promise<T>,
): Promise<T> {
  const target = findOutboxDatabase(context, given.dbUrl);
  if (!target) {
    throw wrongUsage(
      `No database. Pass --db-url, set DBOS_DATABASE_URL, or add database_url to ${CONFIG_FILE} in this folder.`,
    );
  }
  refuseMissingFile(target);
  const { driver, listen, close } = await connect(target);
  const onAbort = (): void => void close();
  context.signal.addEventListener('abort', onAbort, { once: true });
  try {
    context.signal.throwIfAborted();
    // Loaded here, because it brings the engine with it, which other commands do not need.
    const { OutboxBroker: Broker } = await import('./outbox-broker.js');
    const options: OutboxOptions = { ...tablesOf(given), listen };
    return await body(new Broker(sourceOf(driver), options), target);
  } catch (error) {
    throw isMissingTable(error) ? missingTable(error, target) : error;
  } finally {
    context.signal.removeEventListener('abort', onAbort);
    await close();
  }
}

function isMissingTable(error: unknown): error is Error {
  return error instanceof Error && /relation .* does not exist|no such table/.test(error.message);
}

/** A table of the outbox is not there. */
export class MissingTable extends CommandFailure {}

function missingTable({ message }: Error, { shown }: DatabaseTarget): MissingTable {
  return new MissingTable(
    `${shown}: ${message}. Name the tables with --table, --dlq-table, --state-table and --schema, or create them: everstep outbox ddl`,
  );
}

/** A data source without workflows, transactions of the user or completion records. */
function sourceOf(driver: Driver): OutboxDataSource {
  return {
    name: 'cli',
    runTransaction: (callback) => driver.transact({}, callback),
    [internals]: { driver, owner: undefined },
  };
}

interface Connection {
  readonly driver: Driver;
  /** For a further connection, outside of transactions. */
  readonly listen: pg.ClientConfig | false;
  readonly close: () => Promise<void>;
}

async function connect({ url, shown }: DatabaseTarget): Promise<Connection> {
  const location = locateDatabase(url);
  if (location?.kind === 'sqlite') return sqliteConnection((await findSqliteLibrary()).open(location.path));
  if (!location) throw wrongUsage(`"${shown}" is not the URL of a Postgres or SQLite database.`);
  const config = { connectionString: parsePostgresURL(url).toString() };
  const session = new PgSession({ ...config, application_name: 'everstep_cli' });
  try {
    await session.connect();
  } catch (error) {
    throw new CommandFailure(`Cannot connect to ${shown}: ${(error as Error).message}`);
  }
  return postgresConnection(session, config);
}

function postgresConnection(session: PgSession, listen: pg.ClientConfig): Connection {
  let closing: Promise<void> | undefined;
  const query: Driver['query'] = async (_, sqlText, values) =>
    (await session.query<Record<string, unknown>>(sqlText, [...values])).rows;
  return {
    listen,
    close: () => (closing ??= session.end()),
    driver: {
      dialect: 'postgres',
      // The connection is open for the whole command.
      open: async () => {},
      close: async () => {},
      query,
      transact: (options, body) => inTransaction(`BEGIN${options.readOnly ? ' READ ONLY' : ''}`, query, body),
    },
  };
}

/** How long a command waits for the lock of a SQLite file. */
const BUSY_MS = 10_000;

function sqliteConnection(handle: SqliteHandle): Connection {
  let isOpen = true;
  handle.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
  const query: Driver['query'] = async (_, sqlText, values) => handle.prepare(sqlText).all(values.map(toBindValue));
  return {
    listen: false,
    async close() {
      if (isOpen) handle.close();
      isOpen = false;
    },
    driver: {
      dialect: 'sqlite',
      open: async () => {},
      close: async () => {},
      query,
      transact: (options, body) => inTransaction(options.readOnly ? 'BEGIN' : 'BEGIN IMMEDIATE', query, body),
    },
  };
}

async function inTransaction<T>(
  begin: string,
  query: Driver['query'],
  body: (client: unknown) => Promise<T>,
): Promise<T> {
  await query(undefined, begin, []);
  try {
    const result = await body(undefined);
    await query(undefined, 'COMMIT', []);
    return result;
  } catch (error) {
    await query(undefined, 'ROLLBACK', []).catch(() => {
      // The connection is lost, and with it the transaction; the first error says why.
    });
    throw error;
  }
}
