import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { newID } from '../../../src/kernel/base/ids.js';
import { nats } from '../../../src/plugins/outbox/relays/nats.js';
import { type BrokerServer, hasPrograms, startNats } from '../receiver/servers.js';
import { type Arrived, describeTarget, isEmpty, relaying, sendTo } from './relay-conformance.js';

describe.skipIf(!hasPrograms('nats-server'))('NATS JetStream', () => {
  let server: BrokerServer;
  beforeAll(async () => {
    server = await startNats();
  });
  afterAll(() => server.remove());

  const open = async (): Promise<NatsConnection> => {
    const connection = await connect({
      servers: `127.0.0.1:${server.port}`,
      maxReconnectAttempts: -1,
      reconnectTimeWait: 100,
    });
    onTestFinished(() => connection.close());
    return connection;
  };
  const arrivedIn = async (stream: string): Promise<Arrived[]> => {
    const { streams } = await jetstreamManager(await open());
    const { state } = await streams.info(stream);
    const found: Arrived[] = [];
    for (let seq = 1; seq <= state.last_seq; seq += 1) {
      const message = await streams.getMessage(stream, { seq });
      const header = message?.header;
      const headers = Object.fromEntries((header?.keys() ?? []).map((key) => [key, header?.get(key) ?? '']));
      found.push({ messageID: headers['Nats-Msg-Id'], body: Buffer.from(message?.data ?? []), headers });
    }
    return found;
  };
  const createStream = async (): Promise<string> => {
    const name = newID();
    const { streams } = await jetstreamManager(await open());
    await streams.add({ name, subjects: [`${name}.>`] });
    return name;
  };

  describeTarget({
    name: 'nats',
    async place() {
      const name = await createStream();
      const client = jetstream(await open());
      const target = nats(client, { subject: ({ topic }) => `${name}.${topic}`, timeout: '1s' });
      return { target, arrived: () => arrivedIn(name) };
    },
    nowhere: async () => nats(jetstream(await open()), { subject: 'nowhere', timeout: '1s' }),
    stop: () => server.stop(),
    start: () => server.start(),
  });

  test('a message that is sent twice is stored once', async () => {
    const name = await createStream();
    const target = nats(jetstream(await open()), { subject: `${name}.a` });
    const message = { messageID: newID(), headers: { a: 'b' } };

    const results = [await sendTo(target, message), await sendTo(target, message)];

    expect(results).toEqual([{ kind: 'ok' }, { kind: 'ok' }]);
    expect(await arrivedIn(name)).toMatchObject([{ headers: { a: 'b', 'everstep-topic': 't' } }]);
  });

  test.each([
    ['has a header name with a colon', { 'a:b': '1' }, 'rejected'],
    ['has a header name with a line break', { 'a\r\nb': '1' }, 'rejected'],
    ['has a subject with a space', { subject: '. a' }, 'rejected'],
    ['has a subject that no stream has', { nowhere: '1' }, 'retry_terminal'],
    ['makes the function for the subject fail', { fail: '1' }, 'retry_terminal'],
  ])('a message that %s does not hold up the others', async (_, headers: Record<string, string>, reason) => {
    const name = await createStream();
    const target = nats(jetstream(await open()), {
      subject({ headers }) {
        if (headers['fail'] !== undefined) throw new Error('no subject');
        return headers['nowhere'] === undefined ? `${name}.a${headers['subject'] ?? ''}` : 'nowhere';
      },
    });
    const scene = await relaying(target, { retry: () => undefined });

    const { source, outbox } = scene;
    await source.runTransaction(
      async () => {
        await outbox.publish('order.placed', 'bad', { headers, key: 'bad' });
        await outbox.publishAll(
          'order.placed',
          Array.from({ length: 150 }, (_, body) => ({ body })),
        );
      },
      { name: 'publish' },
    );
    await isEmpty(scene);

    expect(await arrivedIn(name)).toHaveLength(150);
    expect((await outbox.dlq.list()).letters).toMatchObject([{ topic: 'order.placed', key: 'bad', reason }]);
  });

  test('connects again after a connection was closed, and closes it at shutdown', async () => {
    const name = await createStream();
    const opened: NatsConnection[] = [];
    const connecting = async (): Promise<NatsConnection> => {
      opened.push(await open());
      return opened.at(-1) as NatsConnection;
    };
    const scene = await relaying(nats(connecting, { subject: `${name}.a` }));
    await scene.source.runTransaction(() => scene.outbox.publish('order.placed', 1), { name: 'publish' });
    await isEmpty(scene);

    await opened[0]?.close();
    await scene.source.runTransaction(() => scene.outbox.publish('order.placed', 2), { name: 'publish' });
    await isEmpty(scene);
    await scene.DBOS.shutdown();

    expect(await arrivedIn(name)).toHaveLength(2);
    expect(opened.map((one) => one.isClosed())).toEqual([true, true]);
  });
});
