// A data source on `pg`.
import { DatabaseStatementError } from '../../../kernel/errors/errors.js';
import type { ClientBase, PoolClient } from 'pg';
import { initializeDataSourceSchemaPG, removeDataSourceSchemaPG } from '../completion-schema.js';
import type { Value } from '../../../kernel/sql/sql.js';
import { beginPG, type Row, type TransactionDriver } from '../driver.js';
import { DeferredBegin, hasProtocol } from '../deferred-begin.js';
import { Finisher } from '../pg-finish.js';
import { type ClientOrConfig, inTransactionPG, ManagedPool, type PoolOrConfig } from '../pg-pool.js';
import {
  clientOfAny,
  type DataSourceOptions,
  type TransactionConfig,
  TransactionalDataSource,
} from '../transactional-data-source.js';

export type NodePostgresTransactionOptions = TransactionConfig;

export class NodePostgresDataSource extends TransactionalDataSource<ClientBase> {
  /** A pool made from `config` is ended at shutdown; a pool of your own is not. */
  constructor(name: string, config: PoolOrConfig, options?: string | DataSourceOptions) {
    super(name, driverOf(new ManagedPool(config, 'NodePostgresDataSource')), options);
  }

  /** The client of the current transaction. */
  static get client(): ClientBase {
    return clientOfAny(NodePostgresDataSource);
  }

  /** Creates the completion table, and grants a role access to it. */
  static initializeDBOSSchema(config: ClientOrConfig, schemaName?: string, applicationRole?: string): Promise<void> {
    return inTransactionPG(config, (exec) => initializeDataSourceSchemaPG(exec, schemaName, applicationRole));
  }

  static uninitializeDBOSSchema(config: ClientOrConfig, schemaName?: string): Promise<void> {
    return inTransactionPG(config, (exec) => removeDataSourceSchemaPG(exec, schemaName));
  }
}

function driverOf(managed: ManagedPool): TransactionDriver<ClientBase> {
  const finisher = new Finisher();
  return {
    dialect: 'postgres',
    listenConfig: () => managed.pool.options,
    open: async () => void managed.open(),
    close: () => managed.close(),
    async transact(options, body) {
      const client = await managed.pool.connect();
      const isDeferred = hasProtocol(client) && !options.mustBegin?.(client);
      const deferred = isDeferred ? new DeferredBegin(client, beginPG(options)) : undefined;
      try {
        if (!deferred) await client.query(beginPG(options));
        const result = await body(client);
        if (!finisher.hasFinished(client) && !deferred?.drop()) await commit(client);
        client.release();
        return result;
      } catch (error) {
        client.release(!deferred?.drop() && (await failsToRollBack(client)));
        throw deferred?.failure ?? error;
      }
    },
    query,
    finish: (client, text, values) =>
      hasProtocol(client) ? finisher.finish(client, text, values) : query(client, text, values),
  };
}

async function query(client: ClientBase, text: string, values: readonly Value[]): Promise<readonly Row[]> {
  return (await client.query<Row>(text, [...values])).rows;
}

async function commit(client: PoolClient): Promise<void> {
  const { command } = await client.query('COMMIT');
  if (command !== 'ROLLBACK') return;
  const message = 'The transaction was rolled back: one of its statements had failed, and the failure was caught.';
  throw new DatabaseStatementError(message, { sqlState: '25P02' });
}

/** A client that cannot roll back must not go back to the pool. */
async function failsToRollBack(client: PoolClient): Promise<boolean> {
  try {
    await client.query('ROLLBACK');
    return false;
  } catch {
    // The connection is lost, and with it the transaction. The caller reports the original error.
    return true;
  }
}
