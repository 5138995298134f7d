import { connect } from 'amqplib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newID } from '../../../src/kernel/base/ids.js';
import {
  type RabbitMQConsumerOptions,
  rabbitMQAdapter,
  type RabbitMQMessage,
} from '../../../src/plugins/receiver/adapters/rabbitmq.js';
import { describeReceiver, type Rig } from './conformance.js';
import { type BrokerServer, hasPrograms, startRabbitMQ } from './servers.js';

describe.skipIf(!hasPrograms('rabbitmq-server', 'epmd'))('RabbitMQ', () => {
  let server: BrokerServer;
  beforeAll(async () => {
    server = await startRabbitMQ();
  });
  afterAll(() => server.remove());

  const url = (): string => `amqp://127.0.0.1:${server?.port ?? 0}`;
  const withChannel = async (body: (channel: Channel) => Promise<void>): Promise<void> => {
    const connection = await connect(url());
    const channel = await connection.createConfirmChannel();
    await body(channel);
    await channel.waitForConfirms();
    await connection.close();
  };
  type Channel = Awaited<ReturnType<Awaited<ReturnType<typeof connect>>['createConfirmChannel']>>;

  const rig: Rig<RabbitMQMessage, RabbitMQConsumerOptions> = {
    name: 'rabbitmq',
    adapter: () => rabbitMQAdapter(url()),
    async createTopic() {
      const queue = newID();
      await withChannel(async (channel) => void (await channel.assertQueue(queue, { durable: true })));
      return queue;
    },
    options: (topic) => ({ queue: topic }),
    publish: (topic, texts) =>
      withChannel(async (channel) => {
        for (const text of texts) {
          channel.sendToQueue(topic, Buffer.from(text), { persistent: true, messageId: newID() });
        }
      }),
    textOf: ({ content }) => content.toString(),
    stop: () => server.stop(),
    start: () => server.start(),
    missing: { options: { queue: 'nowhere' }, says: 'nowhere' },
  };
  describeReceiver(rig);

  test('a message is read as JSON, together with what is known of it', () => {
    const message = {
      queue: 'q',
      content: Buffer.from('{"a":1}'),
      fields: { exchange: '', routingKey: 'q' },
      properties: { messageId: 'm', headers: { h: 1 } },
    } as unknown as RabbitMQMessage;

    const [body, info] = rabbitMQAdapter('').decode(message);

    expect(body).toEqual({ a: 1 });
    expect(info).toMatchObject({ queue: 'q', messageId: 'm', routingKey: 'q', headers: { h: 1 } });
    expect(rabbitMQAdapter('').workflowIDOf(message, { queue: 'q' })).toBe('rabbitmq-q-(m)');
    const nameless = { ...message, properties: {} } as unknown as RabbitMQMessage;
    expect(rabbitMQAdapter('').workflowIDOf(nameless, { queue: 'q' })).toBeUndefined();
  });
});
