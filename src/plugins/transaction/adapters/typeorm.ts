// A data source on TypeORM, for Postgres.
import { notConnected } from '../failures.js';
import type { ClientConfig, PoolConfig } from 'pg';
import { DataSource, type DataSourceOptions as TypeOrmOptions, type EntityManager } from 'typeorm';
import { initializeDataSourceSchemaPG, removeDataSourceSchemaPG } from '../completion-schema.js';
import type { Row, TransactionDriver } from '../driver.js';
import { type ClientOrConfig, inTransactionPG } from '../pg-pool.js';
import {
  clientOfAny,
  type DataSourceOptions,
  type TransactionConfig,
  TransactionalDataSource,
} from '../transactional-data-source.js';

export type TypeORMTransactionConfig = TransactionConfig;
type Entities = NonNullable<TypeOrmOptions['entities']>;

export class TypeOrmDataSource extends TransactionalDataSource<EntityManager> {
  /** Use `createFromConfig` or `createFromDataSource` instead. */
  constructor(name: string, create: () => DataSource, options?: string | DataSourceOptions) {
    super(name, driverOf(create), options);
  }

  /** The TypeORM data source is created at launch and destroyed at shutdown. */
  static createFromConfig(
    name: string,
    config: PoolConfig,
    entities: Entities,
    options?: string | DataSourceOptions,
  ): TypeOrmDataSource {
    return new TypeOrmDataSource(name, () => new DataSource(toOptions(config, entities)), options);
  }

  /** A data source of yours that is not initialized is initialized at launch, and destroyed at shutdown. */
  static createFromDataSource(name: string, ds: DataSource, options?: string | DataSourceOptions): TypeOrmDataSource {
    return new TypeOrmDataSource(name, () => ds, options);
  }

  /** The entity manager of the current transaction. */
  static get entityManager(): EntityManager {
    return clientOfAny(TypeOrmDataSource);
  }

  /** The entity manager of the current transaction. */
  get entityManager(): EntityManager {
    return this.client;
  }

  /** Creates the completion table, and grants a role access to it. */
  static initializeDBOSSchema(config: ClientOrConfig, schemaName?: string, applicationRole?: string): Promise<void> {
    return inTransactionPG(config, (exec) => initializeDataSourceSchemaPG(exec, schemaName, applicationRole));
  }

  static uninitializeDBOSSchema(config: ClientOrConfig, schemaName?: string): Promise<void> {
    return inTransactionPG(config, (exec) => removeDataSourceSchemaPG(exec, schemaName));
  }
}

function toOptions(
  { connectionString, host, port, user, password, database, ssl, max }: PoolConfig,
  entities: Entities,
): TypeOrmOptions {
  const login = { host, port, username: user, password: password as string | undefined, database };
  return {
    type: 'postgres',
    url: connectionString,
    ...login,
    ssl: ssl as boolean | undefined,
    poolSize: max,
    entities,
  };
}

function clientConfigOf(options: TypeOrmOptions): ClientConfig | undefined {
  if (options.type !== 'postgres') return undefined;
  const { url: connectionString, host, port, username: user, password, database, ssl } = options;
  return { connectionString, host, port, user, password, database, ssl } as ClientConfig;
}

function driverOf(create: () => DataSource): TransactionDriver<EntityManager> {
  let ds: DataSource | undefined;
  let isOpenedHere = false;
  return {
    dialect: 'postgres',
    listenConfig: () => ds && clientConfigOf(ds.options),
    async open() {
      ds = create();
      isOpenedHere = !ds.isInitialized;
      if (isOpenedHere) await ds.initialize();
    },
    async close() {
      if (isOpenedHere && ds?.isInitialized) await ds.destroy();
      ds = undefined;
    },
    transact({ isolationLevel, readOnly }, body) {
      if (!ds) throw notConnected('TypeOrmDataSource');
      const run = async (client: EntityManager): ReturnType<typeof body> => {
        if (readOnly) await client.query('SET TRANSACTION READ ONLY');
        return body(client);
      };
      return isolationLevel ? ds.transaction(isolationLevel, run) : ds.transaction(run);
    },
    query: (client, text, values) => client.query<readonly Row[]>(text, [...values]),
  };
}
