import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { newID } from '../../../src/kernel/base/ids.js';
import { redisStream } from '../../../src/plugins/outbox/relays/redis.js';
import { type BrokerServer, hasPrograms, startRedis } from '../receiver/servers.js';
import { type Arrived, describeTarget, isEmpty, publish, relaying } from './relay-conformance.js';

describe.skipIf(!hasPrograms('redis-server'))('Redis Streams', () => {
  let server: BrokerServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.remove());

  const open = (): Redis => {
    const client = new Redis({ port: server.port, maxRetriesPerRequest: 1, retryStrategy: () => 50 });
    client.on('error', () => {});
    onTestFinished(() => client.disconnect());
    return client;
  };
  const arrivedIn = async (stream: string): Promise<Arrived[]> => {
    const entries = (await open().xrangeBuffer(stream, '-', '+')) as [Buffer, Buffer[]][];
    return entries.map(([, fields]) => {
      const field = (name: string) => fields[fields.findIndex((one) => one.toString() === name) + 1] ?? Buffer.of();
      const headers = JSON.parse(field('headers').toString()) as Record<string, string>;
      return { messageID: field('messageID').toString(), body: field('body'), headers };
    });
  };

  describeTarget({
    name: 'redis',
    async place() {
      const stream = newID();
      return { target: redisStream(open(), { stream, timeout: '1s' }), arrived: () => arrivedIn(stream) };
    },
    async nowhere() {
      const key = newID();
      await open().set(key, 'not a stream');
      return redisStream(open(), { stream: key });
    },
    stop: () => server.stop(),
    start: () => server.start(),
  });

  test('keeps the stream to about a length', async () => {
    const stream = newID();
    const scene = await relaying(redisStream(open(), { stream, maxLength: 100 }));

    await publish(
      scene,
      Array.from({ length: 1000 }, (_, n) => n),
    );
    await isEmpty(scene);

    expect(await open().xlen(stream)).toBeLessThan(400);
    expect(() => redisStream(open(), { maxLength: 0 })).toThrow('maxLength');
  });
});
