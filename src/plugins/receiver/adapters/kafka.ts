// The adapter for Kafka, on `kafkajs`. A batch of a partition stays open until all its messages are durable as
// workflows. Their offsets are resolved only then, and committed by the client.
import {
  type Consumer,
  type ConsumerConfig,
  type EachBatchPayload,
  Kafka,
  type KafkaConfig,
  type KafkaMessage as Message,
} from 'kafkajs';
import { type Clock, sleep } from '../../../kernel/base/clock.js';
import { type Deferred, deferred } from '../../../kernel/base/deferred.js';
import { InvalidReceiverError } from '../../../kernel/errors/errors.js';
import { messageOf, oneOf } from '../../../kernel/check/validation.js';
import type { Adapter, ConnectContext, ConsumerOptions, Source } from '../adapter.js';
import { Mailbox } from '../mailbox.js';
import { Receiver, type ReceiverSettings } from '../receiver.js';

/** A message of a partition. */
export interface KafkaMessage {
  readonly topic: string;
  readonly partition: number;
  readonly groupId: string;
  readonly message: Message;
}

/** Which messages are handled one at a time, in order: none, those of a partition, or those of a topic. */
export type KafkaOrdering = 'none' | 'partition' | 'topic';

export interface KafkaConsumerOptions extends ConsumerOptions<KafkaMessage> {
  readonly topics: string | RegExp | readonly (string | RegExp)[];
  /** The consumer group. Default: named after the function and the topics. */
  readonly groupId?: string;
  readonly ordering?: KafkaOrdering;
  /** Further settings for the `kafkajs` consumer. */
  readonly config?: Partial<ConsumerConfig>;
}

/** The part of `Kafka` that the adapter uses. */
export type KafkaClient = Pick<Kafka, 'consumer'>;

/** Below the usual session timeouts, so that we stay in the group while the database is down. */
const HEARTBEAT_MS = 3_000;

/** Receives from Kafka. The workflow's arguments are the topic, the partition and the message as `kafkajs` has it. */
export class KafkaReceiver extends Receiver<KafkaMessage, KafkaConsumerOptions> {
  constructor(config: KafkaConfig | KafkaClient, settings?: ReceiverSettings) {
    super(kafkaAdapter('consumer' in config ? config : new Kafka(config)), settings);
  }
}

const orderingCheck = oneOf(['none', 'partition', 'topic']);

export function kafkaAdapter(client: KafkaClient): Adapter<KafkaMessage, KafkaConsumerOptions> {
  return {
    name: 'kafka',
    optionNames: ['topics', 'groupId', 'ordering', 'config'],
    describe: ({ topics }) => `topic ${topicsOf(topics).map(String).join(', ')}`,
    check: ({ ordering = 'none', orderingKey }) => {
      const problem = orderingCheck.find(ordering);
      if (problem !== undefined) throw new InvalidReceiverError(messageOf(problem, 'ordering'));
      if (ordering !== 'none' && orderingKey) {
        throw new InvalidReceiverError('ordering and orderingKey exclude each other. Set one of them.');
      }
    },
    // The same ID as DBOS's receiver uses: a message that it has started a workflow for does not start another.
    workflowIDOf: ({ topic, partition, groupId, message }) =>
      `kafkajs-${topic}-${partition}-${groupId}-${message.offset}`,
    orderingKey: ({ ordering }) => {
      if (ordering === 'partition') return ({ groupId, topic, partition }) => `${groupId}:${topic}:${partition}`;
      return ordering === 'topic' ? ({ groupId, topic }) => `${groupId}:${topic}` : undefined;
    },
    decode: ({ topic, partition, message }) => [topic, partition, message],
    async connect(options, context) {
      const groupId = options.groupId ?? groupName(context.functionName, topicsOf(options.topics));
      const consumer = client.consumer({ ...options.config, groupId });
      const source = new GroupSource(consumer, groupId, context);
      try {
        await consumer.connect();
        await consumer.subscribe({ topics: topicsOf(options.topics), fromBeginning: true });
        await source.run();
        return source;
      } catch (error) {
        await consumer.disconnect();
        throw error;
      }
    },
  };
}

function topicsOf(topics: KafkaConsumerOptions['topics']): (string | RegExp)[] {
  return typeof topics === 'string' || topics instanceof RegExp ? [topics] : [...topics];
}

function groupName(functionName: string, topics: readonly (string | RegExp)[]): string {
  const parts = [functionName, ...topics].map((part) => String(part).replaceAll(/[^\w-]/g, ''));
  return `everstep-kafka-group-${parts.join('-')}`.slice(0, 255);
}

/** A batch from `kafkajs` that is not fully resolved. */
class OpenBatch {
  readonly #payload: EachBatchPayload;
  readonly done: Deferred<void> = deferred();
  #left: number;

  constructor(payload: EachBatchPayload) {
    this.#payload = payload;
    this.#left = payload.batch.messages.length;
    if (this.#left === 0) this.done.resolve();
  }

  /** The message and all before it are durable as workflows. */
  resolve(offset: string): void {
    this.#payload.resolveOffset(offset);
    this.#left -= 1;
    if (this.#left === 0) this.done.resolve();
  }

  /** Sends heartbeats until the batch is done. Fails if the partition has been reassigned. */
  async keepAlive(clock: Clock): Promise<void> {
    const ended = new AbortController();
    const done = this.done.promise.finally(() => ended.abort());
    while (!ended.signal.aborted) {
      await sleep(clock, HEARTBEAT_MS, ended.signal).catch(() => {
        // Done.
      });
      if (!ended.signal.aborted) await this.#payload.heartbeat();
    }
    await done;
  }
}

class GroupSource implements Source<KafkaMessage> {
  readonly #consumer: Consumer;
  readonly #groupId: string;
  readonly #context: ConnectContext;
  readonly #mailbox = new Mailbox<KafkaMessage>();
  readonly #batches = new WeakMap<KafkaMessage, OpenBatch>();
  readonly #open = new Set<OpenBatch>();
  #isClosed = false;

  constructor(consumer: Consumer, groupId: string, context: ConnectContext) {
    this.#consumer = consumer;
    this.#groupId = groupId;
    this.#context = context;
    consumer.on('consumer.crash', ({ payload }) => this.#mailbox.fail(payload.error));
  }

  async run(): Promise<void> {
    await this.#consumer.run({ eachBatchAutoResolve: false, eachBatch: (payload) => this.#eachBatch(payload) });
  }

  async #eachBatch(payload: EachBatchPayload): Promise<void> {
    if (this.#isClosed) return;
    const { topic, partition, messages } = payload.batch;
    const batch = new OpenBatch(payload);
    this.#open.add(batch);
    for (const message of messages) {
      const one: KafkaMessage = { topic, partition, groupId: this.#groupId, message };
      this.#batches.set(one, batch);
      this.#mailbox.push(one);
    }
    try {
      await batch.keepAlive(this.#context.clock);
    } catch (error) {
      // Fetched messages of the batch are no longer ours: reconnect.
      this.#mailbox.fail(error as Error);
      throw error;
    } finally {
      this.#open.delete(batch);
    }
  }

  fetch(max: number, signal: AbortSignal): Promise<KafkaMessage[]> {
    return this.#mailbox.take(max, signal);
  }

  async acknowledge(messages: readonly KafkaMessage[]): Promise<void> {
    for (const one of messages) this.#batches.get(one)?.resolve(one.message.offset);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    // Unresolved offsets are not committed, so their messages are redelivered.
    for (const batch of this.#open) batch.done.resolve();
    await this.#consumer.disconnect();
  }
}
