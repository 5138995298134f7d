// The outbox: what the application calls. Messages are published in the application's own transactions, and consumed from
// the launch of the instance to its shutdown.
import { internals } from '../base/internals.js';
import { InvalidOutboxError } from '../model/errors/errors.js';
import { checkThat, optional, record } from '../model/validation/validation.js';
import { OutboxDatabase, type OutboxDataSource } from './database.js';
import type { DeduplicationOptions, PublishOptions } from './publish/options.js';
import { type BatchMessage, type Published, Publisher } from './publish/publisher.js';
import { createStatements, ddlText } from './schema/ddl.js';
import { type DlqTable, makeOutboxTable, type OutboxTable, type StateTable } from './schema/tables.js';
import type { Topic } from './topic.js';

export interface OutboxOptions {
  /** Default: `makeOutboxTable()`. */
  readonly outboxTable?: OutboxTable;
  /** Turns dead letters on. Without it, messages that cannot be handled are deleted. */
  readonly dlqTable?: DlqTable;
  /** Turns on paused topics and the deduplication mode `once`. */
  readonly stateTable?: StateTable;
}

const tableOf = (kind: string): ReturnType<typeof checkThat<never>> =>
  checkThat<never>(`made by ${kind}`, (value) => typeof value === 'object' && value !== null && 'columns' in value);
const OPTIONS = record({
  outboxTable: optional(tableOf('makeOutboxTable')),
  dlqTable: optional(tableOf('makeDlqTable')),
  stateTable: optional(tableOf('makeStateTable')),
});

export class OutboxBroker {
  readonly #database: OutboxDatabase;
  readonly #tables: {
    readonly outbox: OutboxTable;
    readonly dlq: DlqTable | undefined;
    readonly state: StateTable | undefined;
  };
  readonly #publisher: Publisher;

  constructor(datasource: OutboxDataSource, options: OutboxOptions = {}) {
    if (typeof (datasource as Partial<OutboxDataSource> | undefined)?.[internals] !== 'object') {
      throw new InvalidOutboxError('OutboxBroker needs a data source of everstep/datasource as its first argument.');
    }
    const { outboxTable = makeOutboxTable(), dlqTable, stateTable } = OPTIONS.read(options, 'options') as OutboxOptions;
    this.#database = new OutboxDatabase(datasource);
    this.#tables = { outbox: outboxTable, dlq: dlqTable, state: stateTable };
    this.#refuseSchemaOnSqlite();
    this.#publisher = this.#publisherIn(() => this.#database.ambient());
  }

  /** Publishes a message in the surrounding transaction of the data source. It is delivered if that commits. */
  publish<T>(topic: Topic<T> | string, body: T, options?: PublishOptions & DeduplicationOptions): Promise<Published> {
    return this.#publisher.publish(topic, body, options);
  }

  /** Publishes messages with one statement. */
  publishAll<T>(
    topic: Topic<T> | string,
    messages: readonly BatchMessage<T>[],
    options?: DeduplicationOptions,
  ): Promise<Published[]> {
    return this.#publisher.publishAll(topic, messages, options);
  }

  /** Deletes the pending message with this timer ID. Takes effect with the surrounding transaction. */
  cancelTimer(topic: Topic | string, timerId: string): Promise<'cancelled' | 'in-flight' | 'absent'> {
    return this.#publisher.cancelTimer(topic, timerId);
  }

  /** Changes when the pending message with this timer ID is due. Takes effect with the surrounding transaction. */
  reschedule(
    topic: Topic | string,
    timerId: string,
    due: Pick<PublishOptions, 'delay' | 'at'>,
  ): Promise<'rescheduled' | 'in-flight' | 'absent'> {
    return this.#publisher.reschedule(topic, timerId, due);
  }

  /** The same calls in a transaction that you opened yourself. `client` is of the same library as the data source. */
  using(client: unknown): Publisher {
    return this.#publisherIn(() => this.#database.foreign(client));
  }

  /** The SQL that creates the tables. Default: in the dialect of the data source. */
  ddl({ dialect = this.#database.driver.dialect }: { readonly dialect?: 'postgres' | 'sqlite' } = {}): string {
    return ddlText(this.#declared, dialect);
  }

  /** Creates the tables in one transaction. Fails if one exists. For tests; elsewhere put `ddl()` into a migration. */
  async install(): Promise<void> {
    await this.#database.connected(() =>
      this.#database.transact(async (tx) => {
        for (const table of this.#declared) {
          for (const statement of createStatements(table, this.#database.driver.dialect)) await tx.exec(statement);
        }
      }),
    );
  }

  get #declared() {
    const { outbox, dlq, state } = this.#tables;
    return [outbox, ...(dlq ? [dlq] : []), ...(state ? [state] : [])];
  }

  #publisherIn(transaction: ConstructorParameters<typeof Publisher>[1]): Publisher {
    const { outbox: table, state: stateTable } = this.#tables;
    return new Publisher({ database: this.#database, table, stateTable, wake: () => {} }, transaction);
  }

  #refuseSchemaOnSqlite(): void {
    if (this.#database.driver.dialect === 'postgres') return;
    if (this.#declared.every(({ schema }) => schema === undefined)) return;
    throw new InvalidOutboxError('SQLite has no schemas. Leave out the schema of the outbox tables.');
  }
}
