// The user's database as the outbox sees it: statements run through the driver of the data source, so that they join the
// transactions of whatever client the application uses.
import { internals } from '../../kernel/base/internals.js';
import { currentClient, defaultRegistry, type ReceivingHost } from '../../run/plugin.js';
import type { PGTransactionConfig, Row, TransactionDriver } from '../transaction/driver.js';
import { OutboxTransactionRequiredError } from '../../kernel/errors/errors.js';
import { postgresJSONDialect } from '../../kernel/sql/postgres-json-dialect.js';
import { type Dialect, render, type Sql } from '../../kernel/sql/sql.js';
import { sqliteDialect } from '../../kernel/sql/sqlite-dialect.js';
import { refuseOutsideTransaction } from './publish/foreign-client.js';

/** A data source of any adapter. */
export interface OutboxDataSource {
  readonly name: string;
  runTransaction<T>(callback: () => Promise<T>, config?: { name?: string }): Promise<T>;
  readonly [internals]: { readonly driver: TransactionDriver<unknown>; readonly owner: object | undefined };
}

/** Runs statements in one transaction. */
export interface Transaction {
  run(statement: Sql): Promise<readonly Row[]>;
  /** Runs text without parameters. */
  exec(text: string): Promise<readonly Row[]>;
  /** For statements of other rooms, in their dialect. */
  query(text: string, values: readonly unknown[]): Promise<readonly Row[]>;
}

export class OutboxDatabase {
  readonly dialect: Dialect;
  readonly driver: TransactionDriver<unknown>;
  readonly #source: OutboxDataSource;

  constructor(source: OutboxDataSource) {
    this.#source = source;
    this.driver = source[internals].driver;
    this.dialect = this.driver.dialect === 'postgres' ? postgresJSONDialect({ schema: 'public' }) : sqliteDialect();
  }

  /** The instance that the data source belongs to; undefined for `DBOS`. */
  get owner(): ReceivingHost | undefined {
    return this.#source[internals].owner as ReceivingHost | undefined;
  }

  /** Runs the body with an open connection: that of a launched instance, or else one for this call. */
  async connected<T>(body: () => Promise<T>): Promise<T> {
    const { registry } = this.owner?.[internals] ?? { registry: defaultRegistry };
    if (registry.engine) return body();
    await this.driver.open();
    try {
      return await body();
    } finally {
      await this.driver.close();
    }
  }

  /** After waiting for a lock, a statement sees what earlier holders committed, whatever the role's default level is. */
  transact<T>(body: (tx: Transaction) => Promise<T>, options: PGTransactionConfig = {}): Promise<T> {
    const { dialect } = this.driver;
    const level = dialect === 'postgres' ? ({ isolationLevel: 'READ COMMITTED' } as const) : {};
    return this.driver.transact({ ...level, ...options }, (client) => body(this.on(client)));
  }

  /** The transaction of the data source that the caller is in. Throws if there is none. */
  ambient(): Transaction {
    const current = currentClient();
    if (!current) {
      throw new OutboxTransactionRequiredError(
        `The outbox publishes in your transaction, and there is none. Publish in runTransaction of data source "${this.#source.name}", or pass your client to using().`,
      );
    }
    if (current.owner === this.#source) return this.on(current.client);
    throw new OutboxTransactionRequiredError(
      `The surrounding transaction belongs to another data source than the outbox, which is on "${this.#source.name}".`,
    );
  }

  /** A transaction that the caller opened. Throws if the client is in none, as far as that can be seen. */
  foreign(client: unknown): Transaction {
    refuseOutsideTransaction(client);
    return this.on(client);
  }

  on(client: unknown): Transaction {
    const query: Transaction['query'] = (text, values) => this.driver.query(client, text, values as never[]);
    return {
      query,
      run: (statement) => {
        const { text, values } = render(statement, this.dialect);
        return query(text, values);
      },
      exec: (text) => query(text, []),
    };
  }

  /** Runs the body in a transaction of the data source, with its client in the context, as `runTransaction` does. */
  inTransaction<T>(body: (tx: Transaction) => Promise<T>): Promise<T> {
    return this.#source.runTransaction(() => body(this.ambient()), { name: 'outbox' });
  }
}
