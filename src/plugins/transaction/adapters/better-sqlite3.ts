// A data source on `better-sqlite3`.
import type { Database } from 'better-sqlite3';
import type { TransactionDriver } from '../driver.js';
import { initializeSqlite, ManagedSqlite, querySqlite, SqliteTransactions } from '../sqlite-transactions.js';
import { clientOfAny, type DataSourceOptions, TransactionalDataSource } from '../transactional-data-source.js';

export class BetterSqlite3DataSource extends TransactionalDataSource<Database> {
  /** A path is opened at launch and closed at shutdown; a database of your own stays open. */
  constructor(name: string, database: Database | string, options?: DataSourceOptions) {
    super(name, driverOf(new ManagedSqlite(database)), options);
  }

  /** The client of the current transaction. */
  static get client(): Database {
    return clientOfAny(BetterSqlite3DataSource);
  }

  /** Creates the completion table. */
  static initializeDBOSSchema(database: Database | string): Promise<void> {
    return initializeSqlite(database);
  }
}

function driverOf(managed: ManagedSqlite): TransactionDriver<Database> {
  const transactions = new SqliteTransactions();
  return {
    dialect: 'sqlite',
    open: async () => void (await managed.open()),
    close: async () => managed.close(),
    transact(options, body) {
      const { database } = managed;
      return transactions.run({ execute: (text) => void database.exec(text) }, options, () => body(database));
    },
    query: async (database, text, values) => querySqlite(database, text, values),
  };
}
