// Transactions on `better-sqlite3`.
import type { Database } from 'better-sqlite3';
import type { TransactionDriver } from '../driver.js';
import { HeldSqlite, initializeSqlite, querySqlite, SqliteTransactions } from '../sqlite-transactions.js';
import { clientOfAny, type DataSourceOptions, TransactionalDataSource } from '../transactional-data-source.js';

export class BetterSqlite3DataSource extends TransactionalDataSource<Database> {
  /** A path is opened at launch and closed at shutdown; a database of your own stays open. */
  constructor(name: string, database: Database | string, options?: DataSourceOptions) {
    super(name, driverOf(new HeldSqlite(database)), options);
  }

  /** The database, in the transaction around. */
  static get client(): Database {
    return clientOfAny(BetterSqlite3DataSource);
  }

  /** Creates the completion table. */
  static initializeDBOSSchema(database: Database | string): Promise<void> {
    return initializeSqlite(database);
  }
}

function driverOf(held: HeldSqlite): TransactionDriver<Database> {
  const transactions = new SqliteTransactions();
  return {
    dialect: 'sqlite',
    open: async () => void (await held.open()),
    close: async () => held.close(),
    transact(options, body) {
      const { database } = held;
      return transactions.run({ execute: (text) => void database.exec(text) }, options, () => body(database));
    },
    query: async (database, text, values) => querySqlite(database, text, values),
  };
}
