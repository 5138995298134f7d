// A data source on Kysely, for Postgres.
import { notConnected } from '../failures.js';
import { CompiledQuery, Kysely, PostgresDialect, type Transaction } from 'kysely';
import { initializeDataSourceSchemaPG, removeDataSourceSchemaPG } from '../completion-schema.js';
import { lowerLevel, type Row, type TransactionDriver } from '../driver.js';
import { type ClientOrConfig, inTransactionPG, ManagedPool, type PoolOrConfig } from '../pg-pool.js';
import {
  type DataSourceOptions,
  type TransactionConfig,
  TransactionalDataSource,
} from '../transactional-data-source.js';

export type { TransactionConfig };

/** A row of the completion table. */
export interface transaction_completion {
  workflow_id: string;
  function_num: number;
  output: string | null;
  error: string | null;
}

export class KyselyDataSource<DB> extends TransactionalDataSource<Transaction<DB>> {
  /** A pool made from a configuration is ended at shutdown; a pool or Kysely of your own is not. */
  constructor(name: string, config: PoolOrConfig | Kysely<DB>, options?: string | DataSourceOptions) {
    super(name, driverOf(config), options);
  }

  /** Creates the completion table, and grants a role access to it. */
  static initializeDBOSSchema(config: ClientOrConfig, schemaName?: string, applicationRole?: string): Promise<void> {
    return inTransactionPG(config, (exec) => initializeDataSourceSchemaPG(exec, schemaName, applicationRole));
  }

  static uninitializeDBOSSchema(config: ClientOrConfig, schemaName?: string): Promise<void> {
    return inTransactionPG(config, (exec) => removeDataSourceSchemaPG(exec, schemaName));
  }
}

function driverOf<DB>(config: PoolOrConfig | Kysely<DB>): TransactionDriver<Transaction<DB>> {
  const managed = config instanceof Kysely ? undefined : new ManagedPool(config, 'KyselyDataSource');
  let db: Kysely<DB> | undefined;
  return {
    dialect: 'postgres',
    listenConfig: () => managed?.pool.options,
    async open() {
      db =
        config instanceof Kysely
          ? config
          : new Kysely<DB>({ dialect: new PostgresDialect({ pool: managed?.open() as never }) });
    },
    async close() {
      db = undefined;
      await managed?.close();
    },
    transact({ isolationLevel, readOnly }, body) {
      if (!db) throw notConnected('KyselyDataSource');
      let transaction = db.transaction();
      const level = lowerLevel(isolationLevel);
      if (level) transaction = transaction.setIsolationLevel(level);
      if (readOnly) transaction = transaction.setAccessMode('read only');
      return transaction.execute(body);
    },
    query: async (client, text, values) => (await client.executeQuery<Row>(CompiledQuery.raw(text, [...values]))).rows,
  };
}
