// Transactions on Kysely, on SQLite through `better-sqlite3`.
import { notConnected } from '../failures.js';
import type { Database } from 'better-sqlite3';
import { CompiledQuery, Kysely, SqliteDialect } from 'kysely';
import type { Row, TransactionDriver } from '../driver.js';
import { HeldSqlite, initializeSqlite, SqliteTransactions } from '../sqlite-transactions.js';
import { type DataSourceOptions, TransactionalDataSource } from '../transactional-data-source.js';

export class KyselySqliteDataSource<DB> extends TransactionalDataSource<Kysely<DB>> {
  /** A path is opened at launch and closed at shutdown; a database of your own stays open. */
  constructor(name: string, database: Database | string, options?: DataSourceOptions) {
    super(name, driverOf(new HeldSqlite(database)), options);
  }

  /** Creates the completion table. */
  static initializeDBOSSchema(database: Database | string): Promise<void> {
    return initializeSqlite(database);
  }
}

function driverOf<DB>(held: HeldSqlite): TransactionDriver<Kysely<DB>> {
  const transactions = new SqliteTransactions();
  let db: Kysely<DB> | undefined;
  return {
    dialect: 'sqlite',
    async open() {
      db = new Kysely<DB>({ dialect: new SqliteDialect({ database: await held.open() }) });
    },
    async close() {
      db = undefined;
      held.close();
    },
    transact(options, body) {
      if (!db) throw notConnected('KyselySqliteDataSource');
      // Kysely's own transactions take the lock for writing too late.
      return db.connection().execute((client) => {
        const execute = async (text: string): Promise<void> =>
          void (await client.executeQuery(CompiledQuery.raw(text)));
        return transactions.run({ execute }, options, () => body(client));
      });
    },
    query: async (client, text, values) => (await client.executeQuery<Row>(CompiledQuery.raw(text, [...values]))).rows,
  };
}
