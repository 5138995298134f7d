// A data source on Kysely, for SQLite through `better-sqlite3`.
import { notConnected } from '../failures.js';
import type { Database } from 'better-sqlite3';
import { CompiledQuery, Kysely, SqliteDialect } from 'kysely';
import type { Row, TransactionDriver } from '../driver.js';
import { initializeSqlite, ManagedSqlite, SqliteTransactions } from '../sqlite-transactions.js';
import { type DataSourceOptions, TransactionalDataSource } from '../transactional-data-source.js';

export class KyselySqliteDataSource<DB> extends TransactionalDataSource<Kysely<DB>> {
  /** A path is opened at launch and closed at shutdown; a database of your own stays open. */
  constructor(name: string, database: Database | string, options?: DataSourceOptions) {
    super(name, driverOf(new ManagedSqlite(database)), options);
  }

  /** Creates the completion table. */
  static initializeDBOSSchema(database: Database | string): Promise<void> {
    return initializeSqlite(database);
  }
}

function driverOf<DB>(managed: ManagedSqlite): TransactionDriver<Kysely<DB>> {
  const transactions = new SqliteTransactions();
  let db: Kysely<DB> | undefined;
  return {
    dialect: 'sqlite',
    async open() {
      db = new Kysely<DB>({ dialect: new SqliteDialect({ database: await managed.open() }) });
    },
    async close() {
      db = undefined;
      managed.close();
    },
    transact(options, body) {
      if (!db) throw notConnected('KyselySqliteDataSource');
      // Kysely's own transactions take the write lock too late.
      return db.connection().execute((client) => {
        const execute = async (text: string): Promise<void> =>
          void (await client.executeQuery(CompiledQuery.raw(text)));
        return transactions.run({ execute }, options, () => body(client));
      });
    },
    query: async (client, text, values) => (await client.executeQuery<Row>(CompiledQuery.raw(text, [...values]))).rows,
  };
}
