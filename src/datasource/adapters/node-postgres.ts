// Transactions on `pg`.
import { DatabaseStatementError } from '../../model/errors/errors.js';
import type { ClientBase, PoolClient } from 'pg';
import { initializeDataSourceSchemaPG, removeDataSourceSchemaPG } from '../completion-schema.js';
import { beginPG, type TransactionDriver } from '../driver.js';
import { canFinish, Finisher } from '../pg-finish.js';
import { type ClientOrConfig, HeldPool, inTransactionPG, type PoolOrConfig } from '../pg-pool.js';
import {
  clientOfAny,
  type DataSourceOptions,
  type TransactionConfig,
  TransactionalDataSource,
} from '../transactional-data-source.js';

export type NodePostgresTransactionOptions = TransactionConfig;

export class NodePostgresDataSource extends TransactionalDataSource<ClientBase> {
  /** `config` makes a pool, which is ended at shutdown; a pool of your own is not. */
  constructor(name: string, config: PoolOrConfig, options?: string | DataSourceOptions) {
    super(name, driverOf(new HeldPool(config, 'NodePostgresDataSource')), options);
  }

  /** The client of the transaction around. */
  static get client(): ClientBase {
    return clientOfAny(NodePostgresDataSource);
  }

  /** Creates the completion table, and lets a role use it. */
  static initializeDBOSSchema(config: ClientOrConfig, schemaName?: string, applicationRole?: string): Promise<void> {
    return inTransactionPG(config, (exec) => initializeDataSourceSchemaPG(exec, schemaName, applicationRole));
  }

  static uninitializeDBOSSchema(config: ClientOrConfig, schemaName?: string): Promise<void> {
    return inTransactionPG(config, (exec) => removeDataSourceSchemaPG(exec, schemaName));
  }
}

function driverOf(held: HeldPool): TransactionDriver<ClientBase> {
  /** The clients whose transaction has committed before its body has ended. */
  const finished = new WeakSet<ClientBase>();
  const finisher = new Finisher();
  return {
    dialect: 'postgres',
    open: async () => void held.open(),
    close: () => held.close(),
    async transact(options, body) {
      const client = await held.pool.connect();
      try {
        await client.query(beginPG(options));
        const result = await body(client);
        if (!finished.delete(client)) await commit(client);
        client.release();
        return result;
      } catch (error) {
        client.release(await failsToRollBack(client));
        throw error;
      }
    },
    query: async (client, text, values) => (await client.query<Record<string, unknown>>(text, [...values])).rows,
    async finish(client, text, values) {
      if (canFinish(client)) {
        await finisher.finish(client, text, values);
        finished.add(client);
      } else await client.query(text, [...values]);
    },
  };
}

async function commit(client: PoolClient): Promise<void> {
  const { command } = await client.query('COMMIT');
  if (command !== 'ROLLBACK') return;
  const message = 'The transaction was rolled back: one of its statements had failed, and the failure was caught.';
  throw new DatabaseStatementError(message, { sqlState: '25P02' });
}

/** A client that cannot roll back is of no further use. */
async function failsToRollBack(client: PoolClient): Promise<boolean> {
  try {
    await client.query('ROLLBACK');
    return false;
  } catch {
    // The connection is gone, and with it the transaction. The error that led here is the one to report.
    return true;
  }
}
