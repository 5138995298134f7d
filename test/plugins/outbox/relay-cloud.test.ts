// The targets whose brokers cannot be started here: Kafka and SQS, against brokers in memory.
import type { SendMessageBatchCommand, SQSClient } from '@aws-sdk/client-sqs';
import type { ProducerBatch, RecordMetadata } from 'kafkajs';
import { describe, expect, test } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { newID } from '../../../src/kernel/base/ids.js';
import { kafka, type KafkaProducer } from '../../../src/plugins/outbox/relays/kafka.js';
import type { RelayMessage } from '../../../src/plugins/outbox/relays/target.js';
import { sqs } from '../../../src/plugins/outbox/relays/sqs.js';
import { until } from '../../crash/processes.js';
import { type Arrived, describeTarget, isEmpty, publish, relaying, sendTo } from './relay-conformance.js';

/** What `kafkajs` makes of a broker's answer. What may be over in a moment it has repeated before. */
function protocolError(code: number, { retriable }: { readonly retriable: boolean }): Error {
  return Object.assign(new Error(`code ${code}`), { name: 'KafkaJSProtocolError', code, retriable });
}

function repeatedInVain(cause: Error): Error {
  return Object.assign(new Error(cause.message), { name: 'KafkaJSNumberOfRetriesExceeded', retriable: false, cause });
}

const UNKNOWN_TOPIC = repeatedInVain(protocolError(3, { retriable: true }));

const NO_QUEUE = Object.assign(new Error('The specified queue does not exist.'), { name: 'QueueDoesNotExist' });

/** A setting that fails for messages with the header `fail`. */
function failing<T>(name: string, setting: (message: RelayMessage) => T): (message: RelayMessage) => T {
  return (message) => {
    if (message.headers['fail'] === name) throw new Error(`no ${name}`);
    return setting(message);
  };
}

class FakeBroker {
  readonly places = new Map<string, Arrived[]>();
  isUp = true;

  constructor(readonly missing: Error) {}

  create(): string {
    const name = newID();
    this.places.set(name, []);
    return name;
  }

  of(name: string): Arrived[] {
    if (!this.isUp) throw Object.assign(new Error('ECONNREFUSED'), { code: 'ECONNREFUSED' });
    const found = this.places.get(name);
    if (!found) throw this.missing;
    return found;
  }

  /** Like the producer of `kafkajs`: a batch is sent whole, or not at all. */
  producer(): KafkaProducer {
    return {
      sendBatch: async ({ topicMessages = [] }: ProducerBatch) => {
        const all = topicMessages.flatMap(({ topic, messages }) =>
          messages.map((message) => ({ place: this.of(topic), message })),
        );
        const tooLarge = all.find(({ message }) => String(message.value).includes('too large'));
        if (tooLarge) throw protocolError(10, { retriable: false });
        for (const { place, message } of all) {
          const headers = message.headers as Record<string, string>;
          const body = message.value as Buffer;
          place.push({ messageID: headers['message-id'], body, headers, key: message.key as string });
        }
        return [];
      },
    };
  }

  /** Like SQS: an entry fails alone, and a FIFO queue drops what it has seen. */
  sqsClient(): Pick<SQSClient, 'send'> {
    const send = async ({ input }: SendMessageBatchCommand): Promise<unknown> => {
      const place = this.of(input.QueueUrl ?? '');
      const entries = input.Entries ?? [];
      if (entries.length > 10) throw new Error('TooManyEntriesInBatchRequest');
      if (entries.some(({ MessageBody = '' }) => MessageBody.length > 1_048_576)) {
        throw Object.assign(new Error('MessageTooLong'), { name: 'InvalidAttributeValue' });
      }
      const isBad = (body: string | undefined) => body === '"bad"' || body === 'bad';
      const failed = entries.filter(({ MessageBody }) => isBad(MessageBody));
      for (const entry of entries) {
        if (
          failed.includes(entry) ||
          place.some(({ key }) => key !== undefined && key === entry.MessageDeduplicationId)
        ) {
          continue;
        }
        const attribute = (name: string) => entry.MessageAttributes?.[name]?.StringValue;
        const encoding = attribute('encoding') === 'base64' ? 'base64' : 'utf8';
        place.push({
          messageID: attribute('messageID'),
          body: Buffer.from(entry.MessageBody ?? '', encoding),
          headers: JSON.parse(attribute('headers') ?? '{}') as Record<string, string>,
          key: entry.MessageDeduplicationId,
          ...(encoding === 'base64' && { encoding }),
        });
      }
      return { Failed: failed.map(({ Id }) => ({ Id, Code: 'InvalidMessageContents', SenderFault: true })) };
    };
    return { send };
  }
}

describe('Kafka', () => {
  const broker = new FakeBroker(UNKNOWN_TOPIC);
  describeTarget({
    name: 'kafka',
    async place() {
      const topic = broker.create();
      return { target: kafka(broker.producer(), { topic }), arrived: async () => broker.places.get(topic) ?? [] };
    },
    nowhere: async () => kafka(broker.producer(), { topic: 'nowhere' }),
    stop: () => void (broker.isUp = false),
    start: () => void (broker.isUp = true),
  });

  test('a message that the broker does not take does not hold up its batch', async () => {
    const topic = broker.create();
    const scene = await relaying(kafka(broker.producer(), { topic }), { retry: () => undefined });

    const ids = await publish(scene, [1, 'too large', 3]);
    await isEmpty(scene);

    expect(broker.places.get(topic)?.map(({ messageID, key }) => [messageID, key])).toEqual([
      [ids[0], 'k0'],
      [ids[2], 'k2'],
    ]);
    expect((await scene.outbox.dlq.list()).letters).toMatchObject([{ messageID: ids[1], reason: 'retry_terminal' }]);
  });

  test.each([
    ['goes to a topic that does not exist', { place: 'nowhere' }, 'retry_terminal'],
    ['goes to a topic that cannot exist', { place: 'no such topic!' }, 'rejected'],
    ['makes the function for the topic fail', { fail: 'topic' }, 'retry_terminal'],
    ['makes the function for the key fail', { fail: 'key' }, 'retry_terminal'],
  ])('a message that %s does not hold up the others', async (_, headers, reason) => {
    const topic = broker.create();
    const settings = {
      topic: failing('topic', ({ headers }) => headers['place'] ?? topic),
      key: failing('key', ({ key }) => key),
    };
    const scene = await relaying(kafka(broker.producer(), settings), { retry: () => undefined });

    await scene.source.runTransaction(() => scene.outbox.publish('order.placed', 'bad', { headers, key: 'bad' }), {
      name: 'publish',
    });
    await publish(
      scene,
      Array.from({ length: 150 }, (_, n) => n),
    );
    await isEmpty(scene);

    expect(broker.places.get(topic)).toHaveLength(150);
    expect((await scene.outbox.dlq.list()).letters).toMatchObject([{ topic: 'order.placed', key: 'bad', reason }]);
  });

  test('credentials that the broker refuses are no fault of a message', async () => {
    const cause = Object.assign(new Error('SASL PLAIN authentication failed'), {
      name: 'KafkaJSSASLAuthenticationError',
    });
    const sendBatch = () => Promise.reject(Object.assign(new Error(), { name: 'KafkaJSNonRetriableError', cause }));

    expect(await sendTo(kafka({ sendBatch }))).toMatchObject({ kind: 'unavailable' });
  });
});

/** Opens producers of the broker, each as the plan says. */
class Opener {
  readonly opened: Producer[] = [];
  readonly #broker: FakeBroker;
  readonly #plan: ((producer: Producer) => Promise<Producer>)[];

  constructor(broker: FakeBroker, plan: ((producer: Producer) => Promise<Producer>)[] = []) {
    this.#broker = broker;
    this.#plan = plan;
  }

  readonly open = (): Promise<Producer> => {
    const producer = new Producer(this.#broker);
    this.opened.push(producer);
    return (this.#plan.shift() ?? ((connected) => Promise.resolve(connected)))(producer);
  };
}

/** Like that of `kafkajs`: after one of its topics was deleted, it knows of none. */
class Producer implements KafkaProducer {
  readonly #broker: FakeBroker;
  readonly #onDisconnect: (() => void)[] = [];
  readonly #topics = new Set<string>();
  isConnected = true;

  constructor(broker: FakeBroker) {
    this.#broker = broker;
  }

  readonly on = ((_: string, listener: () => void) => void this.#onDisconnect.push(listener)) as never;

  async sendBatch(batch: ProducerBatch): Promise<RecordMetadata[]> {
    if (!this.isConnected) throw new Error('The producer is disconnected');
    const topics = (batch.topicMessages ?? []).map(({ topic }) => topic);
    for (const topic of [...this.#topics, ...topics]) this.#broker.of(topic);
    for (const topic of topics) this.#topics.add(topic);
    return this.#broker.producer().sendBatch(batch);
  }

  async disconnect(): Promise<void> {
    this.isConnected = false;
    for (const listener of this.#onDisconnect) listener();
  }
}

describe('Producers of Kafka that the relay opens', () => {
  const broker = new FakeBroker(UNKNOWN_TOPIC);

  test('are opened again after the first could not connect', async () => {
    const topic = broker.create();
    const refuse = () => Promise.reject(new Error('ECONNREFUSED'));
    const opener = new Opener(broker, [refuse, refuse]);
    const scene = await relaying(kafka(opener.open, { topic }));

    await publish(scene, [1]);
    await isEmpty(scene);

    expect(opener.opened).toHaveLength(3);
    expect(broker.places.get(topic)).toHaveLength(1);
  });

  test('are opened again after the first did not connect in time, and it is closed when it does', async () => {
    const topic = broker.create();
    const late = deferred<void>();
    const opener = new Opener(broker, [(producer) => late.promise.then(() => producer)]);
    const scene = await relaying(kafka(opener.open, { topic, timeout: 20 }));

    await publish(scene, [1]);
    await isEmpty(scene);
    late.resolve();
    await until('the late one is closed', () => opener.opened[0]?.isConnected === false);

    expect(opener.opened.map(({ isConnected }) => isConnected)).toEqual([false, true]);
  });

  test('are opened again after one was disconnected, and closed at shutdown', async () => {
    const topic = broker.create();
    const opener = new Opener(broker);
    const scene = await relaying(kafka(opener.open, { topic }));
    await publish(scene, [1]);
    await isEmpty(scene);

    await opener.opened[0]?.disconnect();
    await publish(scene, [2]);
    await isEmpty(scene);
    const last = opener.opened.at(-1);
    expect(last?.isConnected).toBe(true);
    await scene.DBOS.shutdown();

    expect(opener.opened).toHaveLength(2);
    expect(last?.isConnected).toBe(false);
  });

  test('know their topics again after one of them was deleted', async () => {
    const [topic, deleted] = [broker.create(), broker.create()];
    const opener = new Opener(broker);
    const target = kafka(opener.open, { topic: ({ headers }) => headers['topic'] ?? topic });
    const to = (name: string) => sendTo(target, { headers: { topic: name } });
    expect([await to(topic), await to(deleted)]).toEqual([{ kind: 'ok' }, { kind: 'ok' }]);

    broker.places.delete(deleted);
    const results = [await to(topic), await to(topic), await to(deleted), await to(topic)];

    expect(results.map(({ kind }) => kind)).toEqual(['unavailable', 'ok', 'retry', 'ok']);
  });
});

describe('SQS', () => {
  const broker = new FakeBroker(NO_QUEUE);
  describeTarget({
    name: 'sqs',
    async place() {
      const queueUrl = broker.create();
      return { target: sqs(broker.sqsClient(), { queueUrl }), arrived: async () => broker.places.get(queueUrl) ?? [] };
    },
    nowhere: async () => sqs(broker.sqsClient(), { queueUrl: 'nowhere' }),
    stop: () => void (broker.isUp = false),
    start: () => void (broker.isUp = true),
  });

  test('a message that is too large does not hold up the others', async () => {
    const queueUrl = broker.create();
    const scene = await relaying(sqs(broker.sqsClient(), { queueUrl }), { retry: () => undefined });

    const ids = await publish(scene, ['x'.repeat(1_500_000), ...Array.from({ length: 30 }, (_, n) => n)]);
    await isEmpty(scene);

    expect(broker.places.get(queueUrl)).toHaveLength(30);
    expect((await scene.outbox.dlq.list()).letters).toMatchObject([{ messageID: ids[0], reason: 'retry_terminal' }]);
  });

  test('a text with characters that SQS does not take is sent as bytes', async () => {
    const queueUrl = broker.create();

    const result = await sendTo(sqs(broker.sqsClient(), { queueUrl }), { payload: Buffer.from('a\u0001b') });

    expect(result).toEqual({ kind: 'ok' });
    expect(broker.places.get(queueUrl)).toMatchObject([{ body: Buffer.from('a\u0001b'), encoding: 'base64' }]);
  });

  test('an entry that fails is a dead letter, and the others arrive', async () => {
    const queueUrl = broker.create();
    const scene = await relaying(sqs(broker.sqsClient(), { queueUrl }));

    const ids = await publish(scene, ['good', 'bad', 'better']);
    await isEmpty(scene);

    expect(broker.places.get(queueUrl)?.map(({ messageID }) => messageID)).toEqual([ids[0], ids[2]]);
    expect((await scene.outbox.dlq.list()).letters).toMatchObject([{ messageID: ids[1], reason: 'rejected' }]);
  });

  test('a FIFO queue gets a group and deduplicates by the message ID', async () => {
    const queueUrl = `${broker.create()}.fifo`;
    broker.places.set(queueUrl, []);
    const target = sqs(broker.sqsClient(), { queueUrl });
    const messageID = newID();

    await sendTo(target, { messageID, key: 'k' });
    await sendTo(target, { messageID, key: 'k' });

    expect(broker.places.get(queueUrl)).toMatchObject([{ key: messageID }]);
  });
});
