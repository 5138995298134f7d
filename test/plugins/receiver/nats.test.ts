import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newID } from '../../../src/kernel/base/ids.js';
import {
  type NatsConsumerOptions,
  natsAdapter,
  type NatsMessage,
} from '../../../src/plugins/receiver/adapters/nats.js';
import { describeReceiver, type Rig } from './conformance.js';
import { type BrokerServer, hasPrograms, startNats } from './servers.js';

describe.skipIf(!hasPrograms('nats-server'))('NATS JetStream', () => {
  let server: BrokerServer;
  beforeAll(async () => {
    server = await startNats();
  });
  afterAll(() => server.remove());

  const config = () => ({ servers: `127.0.0.1:${server?.port ?? 0}` });
  const connected = async <T>(body: (connection: NatsConnection) => Promise<T>): Promise<T> => {
    const connection = await connect(config());
    try {
      return await body(connection);
    } finally {
      await connection.close();
    }
  };

  const rig: Rig<NatsMessage, NatsConsumerOptions> = {
    name: 'nats',
    adapter: () => natsAdapter(config()),
    createTopic: () =>
      connected(async (connection) => {
        const name = newID();
        const manager = await jetstreamManager(connection);
        await manager.streams.add({ name, subjects: [`${name}.>`] });
        return name;
      }),
    options: (topic) => ({ stream: topic, consumer: 'consumer', ackWaitMs: 1000 }),
    publish: (topic, texts) =>
      connected(async (connection) => {
        for (const text of texts) await jetstream(connection).publish(`${topic}.new`, text);
      }),
    textOf: ({ data }) => Buffer.from(data).toString(),
    stop: () => server.stop(),
    start: () => server.start(),
    missing: { options: { stream: 'nowhere' }, says: 'stream "nowhere"' },
  };
  describeReceiver(rig);

  test('a stream that was created anew has other messages, although their numbers are the same', () => {
    const message: NatsMessage = {
      stream: 's',
      streamCreatedAt: 1,
      consumer: 'c',
      sequence: 7,
      subject: 'a.b',
      data: Buffer.from('{"a":1}'),
      headers: {},
    };
    const adapter = natsAdapter({});

    const ids = [message, { ...message, streamCreatedAt: 2 }].map((one) => adapter.workflowIDOf(one, { stream: 's' }));

    expect(ids).toEqual(['nats-s-1-c-7', 'nats-s-2-c-7']);
    expect(adapter.decode(message)).toEqual([{ a: 1 }, { stream: 's', sequence: 7, subject: 'a.b', headers: {} }]);
  });
});
