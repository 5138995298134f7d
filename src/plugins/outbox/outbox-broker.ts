// The outbox: what the application calls. Messages are published in the application's own transactions, and consumed from
// the launch of the instance to its shutdown.
import type { ClientConfig } from 'pg';
import type { Deadline } from '../../kernel/base/time-limit.js';
import { internals } from '../../kernel/base/internals.js';
import { Handoff, type ReceivingHost, receivingHost, serveQueue, type UserFunction } from '../../run/plugin.js';
import { DBOSAlreadyLaunchedError, InvalidOutboxError } from '../../kernel/errors/errors.js';
import { func } from '../../kernel/check/validation.js';
import type { Handler } from './consume/handling.js';
import type { MessageInfo } from './consume/message.js';
import type { HandlerOptions, WorkflowOptions } from './consume/options.js';
import { type HealthOptions, healthOf, type OutboxHealth } from './health.js';
import { pauseTopic, resumeTopic } from './consume/pausing.js';
import { Serving } from './consume/serving.js';
import { type QueueStatistics, statisticsOf } from './consume/statistics.js';
import {
  handlerSubscription,
  refuseCompetitor,
  refusePattern,
  type Subscription,
  workflowSubscription,
} from './consume/subscriptions.js';
import { OutboxDatabase, type OutboxDataSource } from './database.js';
import { DeadLetters } from './dead-letters/dead-letters.js';
import { OUTBOX_OPTIONS, type OutboxOptions } from './outbox-options.js';
import type { StartOptions } from './publish/forwarding.js';
import type { DeduplicationOptions, PublishOptions } from './publish/options.js';
import { type BatchMessage, type Published, Publisher } from './publish/publisher.js';
import type { RelayOptions } from './relays/relay.js';
import { relaySubscription } from './relays/subscription.js';
import type { RelayTarget } from './relays/target.js';
import type { RetentionOptions } from './retention/options.js';
import { Retention } from './retention/retention.js';
import { scheduleRetention } from './retention/schedule.js';
import { createStatements, type DdlOptions, ddlText } from './schema/ddl.js';
import { declared, makeOutboxTable, type OutboxTables } from './schema/tables.js';
import { type Topic, topicOf } from './topic.js';
import { type CheckOptions, checkSchema, driftError, type SchemaReport } from './validate/validation.js';

export class OutboxBroker {
  readonly #source: OutboxDataSource;
  readonly #database: OutboxDatabase;
  readonly #tables: OutboxTables;
  readonly #options: OutboxOptions;
  readonly #publisher: Publisher;
  readonly #subscriptions: Subscription[] = [];
  #host: ReceivingHost | undefined;
  #serving: Serving | undefined;

  constructor(datasource: OutboxDataSource, options: OutboxOptions = {}) {
    if (typeof (datasource as Partial<OutboxDataSource> | undefined)?.[internals] !== 'object') {
      throw new InvalidOutboxError('OutboxBroker needs a data source of everstep/datasource as its first argument.');
    }
    OUTBOX_OPTIONS.read(options, 'options');
    const { outboxTable = makeOutboxTable(), dlqTable, stateTable } = options;
    this.#source = datasource;
    this.#database = new OutboxDatabase(datasource);
    this.#options = options;
    this.#tables = { outbox: outboxTable, dlq: dlqTable, state: stateTable };
    this.#refuseSchemaOnSqlite();
    this.#publisher = this.#publisherIn(() => this.#database.ambient());
    this.#host = this.#database.owner;
    this.#host?.registerLifecycleCallback(this);
  }

  /** That of the data source, with that of the table if it is not `outbox`. The admin server lists the outbox by it. */
  get name(): string {
    const { tableName } = this.#tables.outbox;
    return tableName === makeOutboxTable().tableName ? this.#source.name : `${this.#source.name}.${tableName}`;
  }

  // ── Publishing ─────────────────────────────────────────────────────────────────────────────────────────────────

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

  /** Starts a workflow as part of the surrounding transaction. Returns its ID. */
  start<Args extends unknown[]>(
    workflow: (...args: Args) => Promise<unknown>,
    args: Args,
    options?: StartOptions,
  ): Promise<string> {
    return this.#publisher.start(workflow, args, options);
  }

  /** Sends a message to a workflow as part of the surrounding transaction. */
  send(workflowID: string, message: unknown, topic?: string): Promise<void> {
    return this.#publisher.send(workflowID, message, topic);
  }

  /** The same calls in a transaction that you opened yourself. `client` is of the same library as the data source. */
  using(client: unknown): Publisher {
    return this.#publisherIn(() => this.#database.foreign(client));
  }

  // ── Consuming ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** Calls the handler for each message, at least once. Call it before launch. */
  on<T>(topic: Topic<T> | string, handler: Handler<T>, options?: HandlerOptions): void;
  /** Starts the workflow for each message, exactly once. Call it before launch. */
  on<T>(
    topic: Topic<T> | string,
    workflow: (body: T, message: MessageInfo) => Promise<unknown>,
    options?: WorkflowOptions<T>,
  ): void;
  on<T>(topic: Topic<T> | string, target: unknown, options: HandlerOptions & WorkflowOptions<T> = {}): void {
    func.read(target, 'handler');
    const on = topicOf(topic) as Topic;
    const host = this.#hosted();
    const isWorkflow = host[internals].registry.findByFunction(target)?.kind === 'workflow';
    const subscription = isWorkflow
      ? workflowSubscription(on, target as UserFunction, options as WorkflowOptions<unknown>)
      : handlerSubscription(this.#source, on, { handler: target as Handler<unknown>, options });
    refusePattern(subscription);
    this.#subscribe(subscription);
  }

  /** Publishes each message to a target, at least once. `*` in the topic stands for any text. Call it before launch. */
  relay(topic: Topic | string, target: RelayTarget<unknown>, options: RelayOptions = {}): void {
    const host = this.#hosted();
    this.#subscribe(relaySubscription(this.#source, topicOf(topic), { target, options, logger: () => host.logger }));
  }

  /**
   * No process fetches messages of the topic any more, until it is resumed. Messages in flight are finished. False if it
   * was paused already.
   */
  pause(topic: Topic | string): Promise<boolean> {
    return pauseTopic(this.#database, this.#tables, topicOf(topic).name);
  }

  /** False if the topic was not paused. */
  async resume(topic: Topic | string): Promise<boolean> {
    const changed = await resumeTopic(this.#database, this.#tables, topicOf(topic).name);
    // Its subscriptions have queues of their own.
    this.#serving?.wake();
    return changed;
  }

  /** Depth, lag, messages in flight and dead letters, by queue. */
  statistics(): Promise<QueueStatistics[]> {
    return statisticsOf(this.#database, this.#tables);
  }

  /** Whether messages are fetched in time and dead letters do not pile up, for a health route. */
  health(options: HealthOptions = {}): Promise<OutboxHealth> {
    return healthOf(this.#database, this.#tables, options);
  }

  /** Called at launch: starts to consume. */
  async initialize(): Promise<void> {
    const host = this.#hosted();
    const engine = new Handoff(host);
    const { renderError } = this.#options;
    this.#serving = new Serving({
      engine,
      database: this.#database,
      tables: this.#tables,
      listenConfig: this.#listenConfig(),
      renderError,
      subscriptions: this.#subscriptions,
      serveQueue: (name, parameters) => serveQueue(host, name, parameters),
    });
    this.#serving.start();
  }

  /** Called at shutdown: finishes what is in flight. */
  async destroy(deadline: Deadline): Promise<void> {
    const serving = this.#serving;
    this.#serving = undefined;
    await serving?.stop(deadline);
  }

  // ── Dead letters ───────────────────────────────────────────────────────────────────────────────────────────────

  /** The dead letters. Throws if the outbox has no table for them. */
  get dlq(): DeadLetters {
    const { outbox: table, dlq } = this.#tables;
    if (!dlq) {
      throw new InvalidOutboxError(
        'The outbox keeps no dead letters. Pass dlqTable: makeDlqTable() to the OutboxBroker.',
      );
    }
    return new DeadLetters({ database: this.#database, table, dlq }, (queue) => this.#serving?.wake(queue));
  }

  /**
   * Keeps dead letters for a time, and forgets the expired keys of `once`. With `schedule`, a workflow does that; otherwise
   * call `run()` yourself.
   */
  retention(options: RetentionOptions): Retention {
    const parts = { database: this.#database, tables: this.#tables, config: () => this.#listenConfig() };
    const retention = new Retention(parts, options);
    const { schedule: crontab } = options;
    const name = `${this.#source.name}.${this.#tables.outbox.tableName}`;
    if (crontab !== undefined) scheduleRetention(this.#hosted(), retention, { crontab, name });
    return retention;
  }

  // ── Schema ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** The SQL that creates the tables. Default: in the dialect of the data source. */
  ddl({ dialect = this.#database.driver.dialect, autovacuum = false }: DdlOptions = {}): string {
    return ddlText(this.#declared, dialect, { autovacuum });
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

  /** Compares the live tables with their declaration. Runs when you call it, never by itself. */
  checkSchema(options: CheckOptions = {}): Promise<SchemaReport> {
    return checkSchema(this.#database, this.#declared, options);
  }

  /** The same, but throws an error that lists all findings if the tables differ. */
  async validateSchema(options: CheckOptions = {}): Promise<SchemaReport> {
    const report = await this.checkSchema(options);
    if (!report.ok) throw driftError(report);
    return report;
  }

  /** How `pg` connects to the database; undefined if it is not known. */
  #listenConfig(): ClientConfig | undefined {
    const { listen = this.#database.driver.listenConfig?.() } = this.#options;
    return typeof listen === 'string' ? { connectionString: listen } : listen || undefined;
  }

  #subscribe(subscription: Subscription): void {
    if (this.#serving) {
      throw new DBOSAlreadyLaunchedError('Subscriptions of an outbox must be made before DBOS.launch().');
    }
    refuseCompetitor(this.#subscriptions, subscription);
    this.#subscriptions.push(subscription);
  }

  get #declared() {
    return declared(this.#tables);
  }

  /** The instance that consumes. A program that only publishes or checks the schema needs none. */
  #hosted(): ReceivingHost {
    if (!this.#host) {
      this.#host = receivingHost();
      this.#host.registerLifecycleCallback(this);
    }
    return this.#host;
  }

  #publisherIn(transaction: ConstructorParameters<typeof Publisher>[1]): Publisher {
    const { outbox: table, state: stateTable } = this.#tables;
    const wake = (queue: string): void => this.#serving?.wake(queue);
    const engine = (): Handoff => new Handoff(this.#hosted());
    return new Publisher({ database: this.#database, table, stateTable, wake, engine }, transaction);
  }

  #refuseSchemaOnSqlite(): void {
    if (this.#database.driver.dialect === 'postgres') return;
    if (this.#declared.every(({ schema }) => schema === undefined)) return;
    throw new InvalidOutboxError('SQLite has no schemas. Leave out the schema of the outbox tables.');
  }
}
