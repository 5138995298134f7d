// A data source on Drizzle, for Postgres through `pg`.
import { type SQL, sql } from 'drizzle-orm';
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres';
import { initializeDataSourceSchemaPG, removeDataSourceSchemaPG } from '../completion-schema.js';
import { lowerLevel, type PGIsolationLevel, type Row, type TransactionDriver } from '../driver.js';
import { type ClientOrConfig, inTransactionPG, ManagedPool, type PoolOrConfig } from '../pg-pool.js';
import { clientOfAny, type DataSourceOptions, TransactionalDataSource } from '../transactional-data-source.js';

export type { transaction_completion } from './kysely.js';
type Entities = Record<string, object>;

export interface TransactionConfig {
  isolationLevel?: PGIsolationLevel | Lowercase<PGIsolationLevel>;
  accessMode?: 'read only' | 'read write';
  name?: string;
}

export class DrizzleDataSource<CT = NodePgDatabase<Entities>> extends TransactionalDataSource<CT, TransactionConfig> {
  /** `entities` is Drizzle's `schema`. A pool of your own is not ended at shutdown. */
  constructor(name: string, config: PoolOrConfig, entities: Entities = {}, options?: string | DataSourceOptions) {
    super(name, driverOf<CT>(config, entities), options);
  }

  /** The client of the current transaction. */
  static get client(): NodePgDatabase<Entities> {
    return clientOfAny(DrizzleDataSource<NodePgDatabase<Entities>>);
  }

  /** Creates the completion table, and grants a role access to it. */
  static initializeDBOSSchema(config: ClientOrConfig, schemaName?: string, applicationRole?: string): Promise<void> {
    return inTransactionPG(config, (exec) => initializeDataSourceSchemaPG(exec, schemaName, applicationRole));
  }

  static uninitializeDBOSSchema(config: ClientOrConfig, schemaName?: string): Promise<void> {
    return inTransactionPG(config, (exec) => removeDataSourceSchemaPG(exec, schemaName));
  }
}

function driverOf<CT>(config: PoolOrConfig, entities: Entities): TransactionDriver<CT> {
  const managed = new ManagedPool(config, 'DrizzleDataSource');
  return {
    dialect: 'postgres',
    listenConfig: () => managed.pool.options,
    open: async () => void managed.open(),
    close: () => managed.close(),
    transact({ isolationLevel, readOnly }, body) {
      const db = drizzle({ client: managed.pool, schema: entities });
      // The application chooses the type for its entities.
      return db.transaction((client) => body(client as unknown as CT), {
        isolationLevel: lowerLevel(isolationLevel),
        accessMode: readOnly ? 'read only' : undefined,
      });
    },
    async query(client, text, values) {
      const database = client as unknown as NodePgDatabase<Entities>;
      return (await database.execute<Row>(statementOf(text, values))).rows;
    },
  };
}

/** Drizzle builds statements from text and parameters in alternation. */
function statementOf(text: string, values: readonly unknown[]): SQL {
  const parts = text.split(/\$\d+/);
  return sql.join(
    parts.flatMap((part, index) => [sql.raw(part), ...values.slice(index, index + 1).map((value) => sql.param(value))]),
  );
}
