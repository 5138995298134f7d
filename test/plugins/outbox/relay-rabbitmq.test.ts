import { type ConfirmChannel, connect } from 'amqplib';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { newID } from '../../../src/kernel/base/ids.js';
import { rabbitMQ } from '../../../src/plugins/outbox/relays/rabbitmq.js';
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

  test.each([
    ['goes to an exchange that does not exist', { headers: { exchange: 'nowhere' } }, 'retry_terminal'],
    ['has a long routing key', { headers: { routingKey: 'é'.repeat(200) } }, 'rejected'],
    ['has a long correlation ID', { correlationID: 'é'.repeat(255) }, 'rejected'],
    ['has a header with a long name', { headers: { ['h'.repeat(300)]: '1' } }, 'rejected'],
    ['has large headers', { headers: { a: 'x'.repeat(200_000) } }, 'rejected'],
    ['has a long content type', { headers: { 'content-type': 'a'.repeat(300) } }, 'rejected'],
    ['makes the function for the routing key fail', { headers: { fail: 'yes' } }, 'retry_terminal'],
  ])('a message that %s costs no other one an attempt', async (_, options, reason) => {
    const queue = newID();
    await (await open()).assertQueue(queue);
    const target = rabbitMQ(open, {
      exchange: ({ headers }) => headers['exchange'] ?? '',
      routingKey({ headers }) {
        if (headers['fail'] !== undefined) throw new Error('no routing key');
        return headers['routingKey'] ?? queue;
      },
    });
    const scene = await relaying(target, { retry: () => undefined });

    const { source, outbox } = scene;
    await source.runTransaction(
      async () => {
        await outbox.publish('order.placed', Buffer.from('bad'), { ...options, key: 'bad' });
        await outbox.publishAll(
          'order.placed',
          Array.from({ length: 150 }, (_, body) => ({ body })),
        );
      },
      { name: 'publish' },
    );
    await isEmpty(scene);

    expect(new Set((await arrivedIn(queue)).map(({ messageID }) => messageID)).size).toBe(150);
    expect((await outbox.dlq.list()).letters).toMatchObject([{ topic: 'order.placed', key: 'bad', reason }]);
  });

  test('a connection that breaks costs no message in flight an attempt', async () => {
    const queue = newID();
    await (await open()).assertQueue(queue);
    let opened = 0;
    const breaking = async (): Promise<ConfirmChannel> => {
      opened += 1;
      const channel = await open();
      if (opened > 1) return channel;
      const publish = channel.publish.bind(channel);
      let sent = 0;
      channel.publish = (...args) => {
        sent += 1;
        const result = publish(...args);
        // Before the broker can confirm any.
        if (sent === 20) (channel as unknown as Internal).connection.stream.destroy(new Error('cut'));
        return result;
      };
      return channel;
    };
    const scene = await relaying(rabbitMQ(breaking, { routingKey: queue }), { retry: () => undefined });

    const ids = await publish(
      scene,
      Array.from({ length: 20 }, (_, n) => n),
    );
    await isEmpty(scene);

    expect(new Set((await arrivedIn(queue)).map(({ messageID }) => messageID))).toEqual(new Set(ids));
    expect(opened).toBe(2);
    expect((await scene.outbox.dlq.list()).letters).toEqual([]);
  });

  test('a connection that never opens is given up, and another one is opened', async () => {
    const queue = newID();
    await (await open()).assertQueue(queue);
    let opened = 0;
    const hanging = (): Promise<ConfirmChannel> => {
      opened += 1;
      return opened === 1 ? new Promise(() => {}) : open();
    };
    const scene = await relaying(rabbitMQ(hanging, { routingKey: queue, timeout: '500ms' }));

    await publish(scene, [1]);
    await isEmpty(scene);

    expect(await arrivedIn(queue)).toHaveLength(1);
  });

  test('the channel that was opened is closed at shutdown', async () => {
    const queue = newID();
    await (await open()).assertQueue(queue);
    let isClosed = false;
    const closing = async (): Promise<ConfirmChannel> => {
      const channel = await open();
      channel.on('close', () => (isClosed = true));
      return channel;
    };
    const scene = await relaying(rabbitMQ(closing, { routingKey: queue }));
    await publish(scene, [1]);
    await isEmpty(scene);

    await scene.DBOS.shutdown();

    expect(isClosed).toBe(true);
  });
});

interface Internal {
  readonly connection: { readonly stream: { destroy(error: Error): void } };
}
