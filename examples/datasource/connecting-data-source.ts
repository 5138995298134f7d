import pg from 'pg';
import { type DataSourceOptions, TransactionalDataSource, type TransactionDriver } from '../../src/datasource.js';

/** Opens a connection per transaction, for programs that run few of them. */
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
      // Queries report a lost connection. Without a listener, the error would crash the process.
      client.on('error', () => {});
      await client.connect();
      try {
        await client.query(`BEGIN ISOLATION LEVEL ${isolationLevel} ${readOnly ? 'READ ONLY' : 'READ WRITE'}`);
        const result = await body(client);
        await client.query('COMMIT');
        return result;
      } finally {
        // Without a COMMIT, closing the connection rolls back.
        await client.end();
      }
    },
    async query(client, text, values) {
      const { rows } = await client.query<Record<string, unknown>>(text, [...values]);
      return rows;
    },
  };
}
