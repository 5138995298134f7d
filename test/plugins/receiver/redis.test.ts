import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe } from 'vitest';
import { newID } from '../../../src/kernel/base/ids.js';
import {
  type RedisConsumerOptions,
  redisAdapter,
  type RedisMessage,
} from '../../../src/plugins/receiver/adapters/redis.js';
import { describeReceiver, type Rig } from './conformance.js';
import { type BrokerServer, hasPrograms, startRedis } from './servers.js';

describe.skipIf(!hasPrograms('redis-server'))('Redis Streams', () => {
  let server: BrokerServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.remove());

  const rig: Rig<RedisMessage, RedisConsumerOptions> = {
    name: 'redis',
    adapter: () => redisAdapter({ host: '127.0.0.1', port: server?.port ?? 0 }),
    createTopic: async () => newID(),
    options: (topic) => ({ stream: topic, group: 'group', claimAfterMs: 500 }),
    async publish(topic, texts) {
      const client = new Redis(server.port);
      for (const text of texts) await client.xadd(topic, '*', 'text', text);
      client.disconnect();
    },
    textOf: ({ fields }) => fields['text'] ?? '',
    stop: () => server.stop(),
    start: () => server.start(),
  };
  describeReceiver(rig);
});
