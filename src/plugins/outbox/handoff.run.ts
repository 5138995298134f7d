// The part of the engine that the outbox uses: turning messages into workflows and into messages to workflows. If the
// user's database is the system database, they become so in the transaction that deletes them from the outbox.
import type { Clock } from '../../kernel/base/clock.js';
import { internals } from '../../kernel/base/internals.js';
import type { DLogger } from '../../kernel/base/log.js';
import { type BulkMessage, checkMessage, encodeMessage, keyOfMessage } from '../../features/message/messages.js';
import type { Executor, Reader } from '../../database/database.js';
import { insertMessages, judgeMessages, type NewMessage } from '../../features/message/messages.sql.js';
import { INTERNAL_QUEUE } from '../../features/queue/queue.js';
import { findPausedQueues } from '../../features/queue/queues.sql.js';
import { insertWorkflows } from '../../run/rows/workflows.js';
import { foreignDialect, foreignExecutor } from '../../database/transactions/foreign-executor.js';
import type { Query } from '../../database/transactions/shared-database.js';
import type { Engine } from '../../run/engine.js';
import type { ReceivingHost } from '../receiver/receiving.run.js';
import type { UserFunction } from '../../run/registration/registry.js';
import {
  enqueuePrepared,
  type PreparedWorkflow,
  prepareEnqueuedWorkflow,
  type PrepareEnqueuedWorkflowOptions,
  toNewWorkflow,
} from '../../run/prepared.js';

export type { NewMessage, Query };

/** Rows per statement. */
const ROWS_MAX = 500;

/** What to do when the transaction has ended. */
export interface Started {
  committed(): void;
  failed(): void;
}

/** The engine of a launched host, as the outbox uses it. */
export class Handoff {
  readonly clock: Clock;
  readonly logger: DLogger;
  readonly #engine: Engine;
  readonly #dialect: Executor['dialect'];

  constructor(host: ReceivingHost) {
    this.#engine = host[internals].engineFor('the outbox');
    const { clock, logger, database } = this.#engine.runtime;
    this.clock = clock;
    this.logger = logger;
    this.#dialect = foreignDialect(database);
  }

  /** The queue of workflows that have none of their own. */
  get internalQueue(): string {
    return INTERNAL_QUEUE;
  }

  fullNameOf(fn: UserFunction): string {
    const { registry } = this.#engine.runtime;
    return registry.fullNameOf(registry.workflowOf(fn, fn.name));
  }

  /** Checks and encodes the arguments. */
  prepare(
    fn: UserFunction,
    args: readonly unknown[],
    options: PrepareEnqueuedWorkflowOptions,
  ): Promise<PreparedWorkflow> {
    return prepareEnqueuedWorkflow(this.#engine, this.#engine.runtime.registry.workflowOf(fn, fn.name), args, options);
  }

  async encode(outgoing: BulkMessage): Promise<NewMessage> {
    checkMessage(outgoing);
    return encodeMessage(this.#engine.runtime.codec, outgoing, outgoing.serializationType);
  }

  /** Whether a data source is on the system database. `query` must run in a transaction of its own. */
  async isShared(source: object, query: Query): Promise<boolean> {
    return this.#engine.transactions.isShared(source, query);
  }

  /**
   * Creates workflows whose ID is free, in the transaction of `query`. They run here from its commit if there are slots
   * for them and their queue is not paused, and are enqueued otherwise. Call one of the returned functions when the transaction has ended.
   */
  async startIn(query: Query, prepared: readonly PreparedWorkflow[]): Promise<Started> {
    const { queues, runtime } = this.#engine;
    const enqueued = prepared.map(toNewWorkflow);
    // In the same transaction, as a claim would ask.
    const paused = await findPausedQueues({ read: (statement) => this.#on(query).run(statement) });
    const isPaused = enqueued.some(({ queueName }) => queueName !== null && paused.has(queueName));
    const direct = isPaused ? undefined : queues.startDirectly(enqueued);
    const workflows = direct?.workflows ?? enqueued;
    const report = (error: unknown): void => runtime.logger.error(error);
    const failed = (): void => void direct?.failed().catch(report);
    const created = new Set<string>();
    try {
      for (let from = 0; from < workflows.length; from += ROWS_MAX) {
        const rows = await this.#on(query).run(insertWorkflows(workflows.slice(from, from + ROWS_MAX)));
        for (const row of rows) created.add(String(row['creator_xid']));
      }
    } catch (error) {
      failed();
      throw error;
    }
    const committed = (): void => {
      if (direct) void direct.committed(created).catch(report);
      else queues.announce(enqueued);
    };
    return { committed, failed };
  }

  /** Creates workflows whose ID is free, in the system database. */
  async start(prepared: readonly PreparedWorkflow[], signal: AbortSignal): Promise<void> {
    await enqueuePrepared(this.#engine, prepared, { signal });
  }

  /** Sends messages in the transaction of `query`. Returns those whose workflow does not exist. */
  async sendIn(
    query: Query,
    messages: readonly NewMessage[],
  ): Promise<{ missing: NewMessage[]; announce: () => void }> {
    const sendings = messages.map((message) => ({ message }));
    const tx = this.#on(query);
    const written = await tx.run(insertMessages(sendings));
    const reader: Reader = { read: (statement) => tx.run(statement) };
    const verdicts = await judgeMessages(reader, sendings, written);
    const { watchers } = this.#engine.runtime;
    return {
      missing: messages.filter((_, index) => verdicts[index] === 'missing'),
      announce: () => {
        for (const message of messages) watchers.onSent(keyOfMessage(message), { isAnnounced: false });
      },
    };
  }

  /** Sends a message through the system database. False if its workflow does not exist. */
  async send(message: NewMessage): Promise<boolean> {
    const { store, watchers } = this.#engine.runtime;
    await store.writer.room();
    const { sent } = await store.writer.send({ sending: { message }, isAnnounced: true });
    if (sent === 'missing') return false;
    watchers.onSent(keyOfMessage(message), { isAnnounced: true });
    return true;
  }

  #on(query: Query): Executor {
    return foreignExecutor(this.#dialect, query);
  }
}
