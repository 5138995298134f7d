// A data source on Knex, for Postgres.
import { notConnected } from '../failures.js';
import knex, { type Knex } from 'knex';
import type { ClientConfig } from 'pg';
import { initializeDataSourceSchemaPG, removeDataSourceSchemaPG } from '../completion-schema.js';
import { lowerLevel, type Row, type TransactionDriver } from '../driver.js';
import {
  clientOfAny,
  type DataSourceOptions,
  type TransactionConfig,
  TransactionalDataSource,
} from '../transactional-data-source.js';

export type { TransactionConfig };

export class KnexDataSource extends TransactionalDataSource<Knex.Transaction> {
  /** A Knex made from a configuration is destroyed at shutdown; one of your own is not. */
  constructor(name: string, config: Knex.Config | Knex, options?: string | DataSourceOptions) {
    super(name, driverOf(config), options);
  }

  /** The client of the current transaction. */
  static get client(): Knex.Transaction {
    return clientOfAny(KnexDataSource);
  }

  /** Creates the completion table, and grants a role access to it. */
  static initializeDBOSSchema(
    config: Knex.Config | Knex,
    schemaName?: string,
    applicationRole?: string,
  ): Promise<void> {
    return once(config, (exec) => initializeDataSourceSchemaPG(exec, schemaName, applicationRole));
  }

  static uninitializeDBOSSchema(config: Knex.Config | Knex, schemaName?: string): Promise<void> {
    return once(config, (exec) => removeDataSourceSchemaPG(exec, schemaName));
  }
}

function driverOf(config: Knex.Config | Knex): TransactionDriver<Knex.Transaction> {
  let db: Knex | undefined;
  return {
    dialect: 'postgres',
    // Untyped in Knex: what it passes to `pg`.
    listenConfig: () => (db?.client as { connectionSettings?: ClientConfig } | undefined)?.connectionSettings,
    open: async () => void (db ??= connect(config)),
    async close() {
      if (db !== config) await db?.destroy();
      db = undefined;
    },
    transact({ isolationLevel, readOnly }, body) {
      if (!db) throw notConnected('KnexDataSource');
      return db.transaction(body, { isolationLevel: lowerLevel(isolationLevel), readOnly });
    },
    // Knex's placeholders are `?`, in the order of the values.
    query: async (client, text, values) =>
      rowsOf(await client.raw(text.replace(/\$\d+/g, '?'), [...values] as never[])),
  };
}

function connect(config: Knex.Config | Knex): Knex {
  return typeof config === 'function' ? config : knex(config);
}

function rowsOf(result: unknown): readonly Row[] {
  return (result as { readonly rows: readonly Row[] }).rows;
}

async function once(
  config: Knex.Config | Knex,
  body: (exec: (text: string) => Promise<readonly Row[]>) => Promise<void>,
): Promise<void> {
  const db = connect(config);
  try {
    await db.transaction((client) => body(async (text) => rowsOf(await client.raw(text))));
  } finally {
    if (db !== config) await db.destroy();
  }
}
