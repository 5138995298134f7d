import pg from 'pg';
import { type DataSourceOptions, TransactionalDataSource, type TransactionDriver } from '../../src/datasource.js';

/** Opens a connection for each transaction, for programs that have few. */
export class ConnectingDataSource extends TransactionalDataSource<pg.Client> {
  constructor(name: string, url: string, options?: DataSourceOptions) {
    super(name, driverOf(url), options);
  }
}

function driverOf(url: string): TransactionDriver<pg.Client> {
  return {
    dialect: 'postgres',
    open: async () => {},
    close: async () => {},
    async transact({ isolationLevel = 'READ COMMITTED', readOnly }, body) {
      const client = new pg.Client(url);
      // Whoever uses the connection learns of its end; without a listener the process would end, too.
      client.on('error', () => {});
      await client.connect();
      try {
        await client.query(`BEGIN ISOLATION LEVEL ${isolationLevel} ${readOnly ? 'READ ONLY' : 'READ WRITE'}`);
        const result = await body(client);
        await client.query('COMMIT');
        return result;
      } finally {
        // Without a COMMIT, the end of the connection rolls back.
        await client.end();
      }
    },
    async query(client, text, values) {
      const { rows } = await client.query<Record<string, unknown>>(text, [...values]);
      return rows;
    },
  };
}
