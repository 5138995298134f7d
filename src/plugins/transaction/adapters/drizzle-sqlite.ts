// A data source on Drizzle, for SQLite through `better-sqlite3`.
import type { Database } from 'better-sqlite3';
import { type BetterSQLite3Database, drizzle } from 'drizzle-orm/better-sqlite3';
import type { TransactionDriver } from '../driver.js';
import { initializeSqlite, ManagedSqlite, querySqlite, SqliteTransactions } from '../sqlite-transactions.js';
import { type DataSourceOptions, TransactionalDataSource } from '../transactional-data-source.js';

type Entities = Record<string, object>;

export class DrizzleSqliteDataSource<CT = BetterSQLite3Database<Entities>> extends TransactionalDataSource<CT> {
  /** `entities` is Drizzle's `schema`. Only a path is opened at launch and closed at shutdown. */
  constructor(name: string, database: Database | string, entities: Entities = {}, options?: DataSourceOptions) {
    super(name, driverOf<CT>(new ManagedSqlite(database), entities), options);
  }

  /** Creates the completion table. */
  static initializeDBOSSchema(database: Database | string): Promise<void> {
    return initializeSqlite(database);
  }
}

function driverOf<CT>(managed: ManagedSqlite, entities: Entities): TransactionDriver<CT> {
  const transactions = new SqliteTransactions();
  let db: CT | undefined;
  return {
    dialect: 'sqlite',
    async open() {
      // The application chooses the type for its entities.
      db = drizzle({ client: await managed.open(), schema: entities }) as unknown as CT;
    },
    async close() {
      db = undefined;
      managed.close();
    },
    transact(options, body) {
      const { database } = managed;
      // Drizzle's own transactions accept no async functions here.
      return transactions.run({ execute: (text) => void database.exec(text) }, options, () => body(db as CT));
    },
    // The outbox also passes clients that the application made, of a connection of their own.
    query: async (client, text, values) =>
      querySqlite((client as { $client?: Database }).$client ?? managed.database, text, values),
  };
}
