import { type ConfirmChannel, connect } from 'amqplib';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { newID } from '../../src/base/ids.js';
import { rabbitMQ } from '../../src/outbox/relays/rabbitmq.js';
import { type BrokerServer, hasPrograms, startRabbitMQ } from '../receiver/servers.js';
import { type Arrived, describeTarget, isEmpty, publish, relaying } from './relay-conformance.js';

describe.skipIf(!hasPrograms('rabbitmq-server', 'epmd'))('RabbitMQ', () => {
  let server: BrokerServer;
  beforeAll(async () => {
    server = await startRabbitMQ();
  });
  afterAll(() => server.remove());

  const open = async (): Promise<ConfirmChannel> => {
    const connection = await connect(`amqp://127.0.0.1:${server.port}`);
    connection.on('error', () => {});
    onTestFinished(() => connection.close().catch(() => {}));
    return connection.createConfirmChannel();
  };
  const arrivedIn = async (queue: string): Promise<Arrived[]> => {
    const channel = await open();
    const found: Arrived[] = [];
    for (;;) {
      const message = await channel.get(queue, { noAck: true });
      if (!message) return found;
      const { messageId, headers } = message.properties as { messageId: string; headers: Record<string, string> };
      found.push({ messageID: messageId, body: message.content, headers });
    }
  };

  describeTarget({
    name: 'rabbitmq',
    async place() {
      const queue = newID();
      await (await open()).assertQueue(queue, { durable: true });
      return { target: rabbitMQ(open, { routingKey: queue }), arrived: () => arrivedIn(queue) };
    },
    nowhere: async () => rabbitMQ(open, { routingKey: 'nowhere' }),
    stop: () => server.stop(),
    start: () => server.start(),
  });

  test('a message without a route is a dead letter for that reason, and does not hold up the others', async () => {
    const queue = newID();
    await (await open()).assertQueue(queue);
    const target = rabbitMQ(open, { routingKey: ({ key }) => (key === 'k1' ? 'nowhere' : queue) });
    const scene = await relaying(target);

    const ids = await publish(scene, [1, 2, 3]);
    await isEmpty(scene);

    const found = await arrivedIn(queue);
    expect(found.map(({ messageID }) => messageID)).toEqual([ids[0], ids[2]]);
    expect(found[0]?.headers).toMatchObject({ tenant: 'acme' });
    expect((await scene.outbox.dlq.list()).letters).toMatchObject([{ reason: 'unroutable', messageID: ids[1] }]);
  });
});
