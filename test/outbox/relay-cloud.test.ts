// The targets whose brokers cannot be started here: Kafka and SQS, against brokers in memory.
import type { SendMessageBatchCommand, SQSClient } from '@aws-sdk/client-sqs';
import type { ProducerBatch } from 'kafkajs';
import { describe, expect, test } from 'vitest';
import { newID } from '../../src/base/ids.js';
import { kafka, type KafkaProducer } from '../../src/outbox/relays/kafka.js';
import { sqs } from '../../src/outbox/relays/sqs.js';
import { type Arrived, describeTarget, isEmpty, publish, relaying } from './relay-conformance.js';

class FakeBroker {
  readonly places = new Map<string, Arrived[]>();
  isUp = true;

  create(): string {
    const name = newID();
    this.places.set(name, []);
    return name;
  }

  of(name: string): Arrived[] {
    if (!this.isUp) throw Object.assign(new Error('ECONNREFUSED'), { code: 'ECONNREFUSED' });
    const found = this.places.get(name);
    if (!found) throw Object.assign(new Error('no such place'), { name: 'KafkaJSProtocolError', retriable: false });
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
        if (tooLarge) {
          throw Object.assign(new Error('MESSAGE_TOO_LARGE'), { name: 'KafkaJSProtocolError', retriable: false });
        }
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
        });
      }
      return { Failed: failed.map(({ Id }) => ({ Id, Code: 'InvalidMessageContents', SenderFault: true })) };
    };
    return { send };
  }
}

describe('Kafka', () => {
  const broker = new FakeBroker();
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
});

describe('SQS', () => {
  const broker = new FakeBroker();
  describeTarget({
    name: 'sqs',
    async place() {
      const queueUrl = broker.create();
      return { target: sqs(broker.sqsClient(), { queueUrl }), arrived: async () => broker.places.get(queueUrl) ?? [] };
    },
    stop: () => void (broker.isUp = false),
    start: () => void (broker.isUp = true),
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
    const message = {
      messageID: newID(),
      topic: 't',
      key: 'k',
      headers: {},
      contentType: undefined,
      payload: Buffer.from('x'),
      createdAt: 0,
    };

    const { signal } = new AbortController();
    await target.publish([message], signal);
    await target.publish([message], signal);

    expect(broker.places.get(queueUrl)).toMatchObject([{ key: message.messageID }]);
  });
});
