// Publishes messages in a transaction: the one around the call, or one that the caller passed.
import { durationMs } from '../../../kernel/base/duration.js';
import type { Row } from '../../transaction/driver.js';
import { type Handoff, notePublished, type UserFunction } from '../../../run/plugin.js';
import { DBOSInvalidArgumentError, InvalidOutboxError } from '../../../kernel/errors/errors.js';
import { array, record } from '../../../kernel/check/validation.js';
import type { OutboxDatabase, Transaction } from '../database.js';
import type { OutboxTable, StateTable } from '../schema/tables.js';
import { atTime, fromNow } from '../tokens.js';
import { type Topic, topicName, topicOf } from '../topic.js';
import { INTERNAL_TOPIC, type StartOptions, toSend, toStart } from './forwarding.js';
import {
  BATCH_OPTIONS,
  type Deduplication,
  type DeduplicationOptions,
  newMessage,
  type NewMessage,
  PUBLISH_OPTIONS,
  type PublishOptions,
  RESCHEDULE_OPTIONS,
  ROW_OPTIONS,
} from './options.js';
import {
  type ConflictAction,
  deleteTimer,
  findTimer,
  forgetOnce,
  insertMessages,
  moveTimer,
  rememberOnce,
} from './statements.js';

export interface Published {
  /** The ID of the row; undefined if the message was handled before, and only remembered. */
  readonly id: string | undefined;
  /** Identifies the message, also after a retry or from the dead letters. */
  readonly messageID: string;
  /** True if a message with the same `timerId` was pending or remembered. */
  readonly deduplicated: boolean;
}

/** A message of `publishAll` with options of its own. */
export interface BatchMessage<T> extends PublishOptions {
  readonly body: T;
}

export interface PublisherParts {
  readonly database: OutboxDatabase;
  readonly table: OutboxTable;
  readonly stateTable: StateTable | undefined;
  /** Wakes the consumers of this process. */
  readonly wake: (queue: string) => void;
  /** The engine of the launched instance. */
  readonly engine: () => Handoff;
}

export class Publisher {
  readonly #parts: PublisherParts;
  readonly #transaction: () => Transaction;

  constructor(parts: PublisherParts, transaction: () => Transaction) {
    this.#parts = parts;
    this.#transaction = transaction;
  }

  /** Publishes a message in the transaction. It is delivered if that commits. */
  async publish<T>(
    topic: Topic<T> | string,
    body: T,
    options: PublishOptions & DeduplicationOptions = {},
  ): Promise<Published> {
    PUBLISH_OPTIONS.read(options, 'options');
    const transaction = this.#transaction();
    const message = await newMessage(topicOf(topic), body, options);
    const [published] = await this.#insert(transaction, [message], options.dedupe);
    return published as Published;
  }

  /** Publishes messages with one statement. */
  async publishAll<T>(
    topic: Topic<T> | string,
    messages: readonly BatchMessage<T>[],
    options: DeduplicationOptions = {},
  ): Promise<Published[]> {
    BATCH_OPTIONS.read(options, 'options');
    array(record({}, { unknown: 'ignore' })).read(messages, 'messages');
    const transaction = this.#transaction();
    const target = topicOf(topic);
    const rows: NewMessage[] = [];
    for (const [index, { body, ...rest }] of messages.entries()) {
      ROW_OPTIONS.read(rest, `messages[${index}]`);
      rows.push(await newMessage(target, body, rest));
    }
    return rows.length === 0 ? [] : this.#insert(transaction, rows, options.dedupe);
  }

  /** Deletes the pending message with this timer ID. Takes effect with the transaction. */
  async cancelTimer(topic: Topic | string, timerId: string): Promise<'cancelled' | 'in-flight' | 'absent'> {
    const { table, stateTable } = this.#parts;
    const queue = topicOf(topic).name;
    topicName.read(timerId, 'timerId');
    const transaction = this.#transaction();
    const [deleted] = await transaction.run(deleteTimer(table, queue, timerId));
    if (deleted) {
      const messageID = String(deleted['message_id']);
      if (stateTable) await transaction.run(forgetOnce(stateTable, { queue, timerID: timerId, messageID }));
      return 'cancelled';
    }
    return (await transaction.run(findTimer(table, queue, timerId))).length > 0 ? 'in-flight' : 'absent';
  }

  /** Changes when the pending message with this timer ID is due. Takes effect with the transaction. */
  async reschedule(
    topic: Topic | string,
    timerId: string,
    due: Pick<PublishOptions, 'delay' | 'at'>,
  ): Promise<'rescheduled' | 'in-flight' | 'absent'> {
    const { database, table, wake } = this.#parts;
    const queue = topicOf(topic).name;
    topicName.read(timerId, 'timerId');
    RESCHEDULE_OPTIONS.read(due, 'due');
    if ((due.delay === undefined) === (due.at === undefined)) {
      throw new DBOSInvalidArgumentError('Pass delay or at, and not both.', 'due');
    }
    const dueAt = due.at === undefined ? fromNow(durationMs(due.delay ?? 0)) : atTime(Number(due.at));
    const transaction = this.#transaction();
    const moved = await transaction.run(moveTimer(database.dialect, table, { queue, timerID: timerId, dueAt }));
    wake(queue);
    if (moved.length > 0) return 'rescheduled';
    return (await transaction.run(findTimer(table, queue, timerId))).length > 0 ? 'in-flight' : 'absent';
  }

  /** Starts a workflow as part of the transaction. Returns its ID. */
  async start<Args extends unknown[]>(
    workflow: (...args: Args) => Promise<unknown>,
    args: Args,
    options: StartOptions = {},
  ): Promise<string> {
    const transaction = this.#transaction();
    const prepared = await toStart(this.#parts.engine(), workflow as unknown as UserFunction, { args, options });
    const { delay } = options;
    const message = await newMessage(INTERNAL_TOPIC, prepared.body, { ...(delay !== undefined && { delay }) });
    await this.#insert(transaction, [message]);
    return prepared.workflowID;
  }

  /** Sends a message to a workflow as part of the transaction. */
  async send(workflowID: string, message: unknown, topic?: string): Promise<void> {
    const transaction = this.#transaction();
    const body = await toSend(this.#parts.engine(), workflowID, { message, topic });
    await this.#insert(transaction, [await newMessage(INTERNAL_TOPIC, body, {})]);
  }

  async #insert(
    transaction: Transaction,
    messages: readonly NewMessage[],
    dedupe: Deduplication = 'ignore',
  ): Promise<Published[]> {
    const { database, table, wake } = this.#parts;
    const fresh = await this.#notSeen(transaction, messages, dedupe);
    const action = actionOf(dedupe);
    const inserted = withoutRepeated(fresh, action);
    const rows =
      inserted.length === 0
        ? []
        : await transaction.run(insertMessages(database.dialect, table, { messages: inserted, action }));
    for (const queue of new Set(messages.map((message) => message.queue))) wake(queue);
    const published = await this.#judge(transaction, messages, rows);
    for (const [index, { queue, messageID }] of messages.entries()) {
      if (queue !== INTERNAL_TOPIC.name && published[index]?.deduplicated === false)
        notePublished({ messageID, topic: queue });
    }
    return published;
  }

  /** The messages that `once` does not remember. */
  async #notSeen(
    transaction: Transaction,
    messages: readonly NewMessage[],
    dedupe: Deduplication,
  ): Promise<readonly NewMessage[]> {
    if (typeof dedupe !== 'object' || !('once' in dedupe)) return messages;
    const { stateTable } = this.#parts;
    if (!stateTable) {
      throw new InvalidOutboxError(
        'Deduplication with once needs a table. Pass stateTable: makeStateTable() to the OutboxBroker.',
      );
    }
    const named = firstOfEach(messages.filter(({ timerID }) => timerID !== null));
    const rows =
      named.length === 0 ? [] : await transaction.run(rememberOnce(stateTable, named, durationMs(dedupe.once)));
    const fresh = new Set(rows.map((row) => row['message_id']));
    return messages.filter(({ timerID, messageID }) => timerID === null || fresh.has(messageID));
  }

  async #judge(transaction: Transaction, messages: readonly NewMessage[], rows: readonly Row[]): Promise<Published[]> {
    const added = new Map(rows.map((row) => [String(row['message_id']), String(row['id'])]));
    const results: Published[] = [];
    for (const { queue, timerID, messageID } of messages) {
      const id = added.get(messageID);
      if (id !== undefined) {
        results.push({ id, messageID, deduplicated: false });
        continue;
      }
      const [found] = await transaction.run(findTimer(this.#parts.table, queue, timerID ?? ''));
      results.push({
        id: found && String(found['id']),
        messageID: found ? String(found['message_id']) : messageID,
        deduplicated: true,
      });
    }
    return results;
  }
}

function actionOf(dedupe: Deduplication): ConflictAction {
  if (dedupe === 'replace') return { kind: 'replace' };
  if (typeof dedupe === 'object' && 'debounce' in dedupe)
    return { kind: 'debounce', maxMs: durationMs(dedupe.debounce) };
  return { kind: 'ignore' };
}

/** Postgres refuses to update a row twice in one statement. Of messages with the same timer ID the last one counts. */
function withoutRepeated(messages: readonly NewMessage[], { kind }: ConflictAction): readonly NewMessage[] {
  if (kind === 'ignore') return messages;
  const last = new Map(messages.map((message) => [message.timerID, message]));
  return messages.filter((message) => message.timerID === null || last.get(message.timerID) === message);
}

function firstOfEach(messages: readonly NewMessage[]): NewMessage[] {
  return [...new Map(messages.toReversed().map((message) => [message.timerID, message])).values()];
}
