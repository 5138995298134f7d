// A data source on `postgres` (postgres.js).
import { notConnected } from '../failures.js';
import type { ClientConfig } from 'pg';
import postgres from 'postgres';
import { initializeDataSourceSchemaPG, removeDataSourceSchemaPG } from '../completion-schema.js';
import { beginPG, PGIsolationLevel, type Row, type TransactionDriver } from '../driver.js';
import { isClosed } from '../failures.js';
import {
  clientOfAny,
  type DataSourceOptions,
  type TransactionConfig,
  TransactionalDataSource,
} from '../transactional-data-source.js';

export { PGIsolationLevel as IsolationLevel };
export type PostgresTransactionOptions = TransactionConfig;
type Client = postgres.TransactionSql;
type Options = postgres.Options<Record<string, postgres.PostgresType>>;

export class PostgresDataSource extends TransactionalDataSource<Client> {
  /** `config` is the argument of `postgres()`. */
  constructor(name: string, config: Options | string = {}, options?: string | DataSourceOptions) {
    super(name, driverOf(config), options);
  }

  /** The client of the current transaction. */
  static get client(): Client {
    return clientOfAny(PostgresDataSource);
  }

  /** Creates the completion table, and grants a role access to it. */
  static initializeDBOSSchema(config: Options | string, schemaName?: string, applicationRole?: string): Promise<void> {
    return once(config, (exec) => initializeDataSourceSchemaPG(exec, schemaName, applicationRole));
  }

  static uninitializeDBOSSchema(config: Options | string, schemaName?: string): Promise<void> {
    return once(config, (exec) => removeDataSourceSchemaPG(exec, schemaName));
  }
}

/** Without a limit, closing would hang on a lost connection. */
const CLOSE_MAX_SECONDS = 1;

function driverOf(config: Options | string): TransactionDriver<Client> {
  let sql: postgres.Sql | undefined;
  return {
    dialect: 'postgres',
    listenConfig: () => sql && clientConfigOf(sql.options),
    open: async () => void (sql ??= connect(config)),
    async close() {
      await sql?.end({ timeout: CLOSE_MAX_SECONDS });
      sql = undefined;
    },
    async transact(options, body) {
      if (!sql) throw notConnected('PostgresDataSource');
      const result = await sql.begin(beginPG(options).replace('BEGIN', ''), (client) =>
        body(client).catch(hangIfClosed),
      );
      return result as Awaited<ReturnType<typeof body>>;
    },
    query: async (client, text, values) => client.unsafe<Row[]>(text, [...values] as never[]),
  };
}

/**
 * On a closed connection the library would send a ROLLBACK and crash the process. Never settle instead: the library
 * rejects the transaction itself when the connection closes.
 */
async function hangIfClosed(error: unknown): Promise<never> {
  if (isClosed(error)) return new Promise<never>(() => {});
  throw error;
}

function clientConfigOf({ host, port, user, pass, database, ssl }: postgres.ParsedOptions): ClientConfig {
  const password = typeof pass === 'string' ? pass : undefined;
  // Both libraries pass an object on to `tls.connect`.
  return { host: host[0], port: port[0], user, password, database, ssl: ssl as boolean };
}

function connect(config: Options | string): postgres.Sql {
  return typeof config === 'string' ? postgres(config) : postgres(config);
}

async function once(
  config: Options | string,
  body: (exec: (text: string) => Promise<readonly Row[]>) => Promise<void>,
): Promise<void> {
  const sql = connect(config);
  try {
    await sql.begin((client) => body(async (text) => client.unsafe<Row[]>(text)));
  } finally {
    await sql.end();
  }
}
