// Options of consumers and relays, as plain JavaScript passes them. Nothing here connects.
import { describe, expect, test } from 'vitest';
import { createDBOS } from '../../../src/index.js';
import { kafka } from '../../../src/plugins/outbox/relays/kafka.js';
import { nats } from '../../../src/plugins/outbox/relays/nats.js';
import { rabbitMQ } from '../../../src/plugins/outbox/relays/rabbitmq.js';
import { redisStream } from '../../../src/plugins/outbox/relays/redis.js';
import { sqs } from '../../../src/plugins/outbox/relays/sqs.js';
import { webhook } from '../../../src/plugins/outbox/relays/webhook.js';
import type { Adapter, ConsumerOptions } from '../../../src/plugins/receiver/adapter.js';
import { kafkaAdapter } from '../../../src/plugins/receiver/adapters/kafka.js';
import { natsAdapter } from '../../../src/plugins/receiver/adapters/nats.js';
import { postgresAdapter } from '../../../src/plugins/receiver/adapters/postgres.js';
import { rabbitMQAdapter } from '../../../src/plugins/receiver/adapters/rabbitmq.js';
import { redisAdapter } from '../../../src/plugins/receiver/adapters/redis.js';
import { sqsAdapter } from '../../../src/plugins/receiver/adapters/sqs.js';
import { WorkflowRoutes } from '../../../src/plugins/receiver/http/http-routes.js';
import { verifyWebhook } from '../../../src/plugins/receiver/http/webhook.js';
import { Receiver } from '../../../src/plugins/receiver/receiver.js';
import { InvalidReceiverError } from '../../../src/kernel/errors/errors.js';

const NONE = {} as never;
const ADAPTERS = {
  kafka: kafkaAdapter(NONE),
  sqs: sqsAdapter(NONE),
  rabbitmq: rabbitMQAdapter(''),
  nats: natsAdapter({}),
  redis: redisAdapter(''),
  postgres: postgresAdapter(''),
};
const TARGETS = { kafka, nats, rabbitMQ, redisStream, sqs, webhook };
const TABLE = { table: 't', keyColumns: ['id'], sequenceColumn: 'id' };

function register(name: keyof typeof ADAPTERS, options: object): void {
  const dbos = createDBOS();
  const workflow = dbos.registerWorkflow(async () => {}, { name: 'workflow' });
  const adapter = ADAPTERS[name] as unknown as Adapter<unknown, ConsumerOptions<unknown>>;
  new Receiver(adapter, { dbos }).registerConsumer(workflow, options);
}

describe('a consumer', () => {
  test.each<[keyof typeof ADAPTERS, object, string]>([
    ['kafka', { topic: 'orders' }, 'topics'],
    ['sqs', { queueURL: 'q' }, 'queueUrl'],
    ['rabbitmq', { queue: 'q', batchsize: 1 }, 'batchSize'],
    ['nats', { stream: 's', ackWaitMS: 1 }, 'ackWaitMs'],
    ['redis', { stream: 's', claimAfter: 1 }, 'claimAfterMs'],
    ['postgres', { ...TABLE, pollIntervalMS: 1 }, 'pollIntervalMs'],
  ])('of %s refuses a misspelt option with a suggestion', (name, options, meant) => {
    expect(() => register(name, options)).toThrow(InvalidReceiverError);
    expect(() => register(name, options)).toThrow(`Did you mean "${meant}"?`);
  });

  test.each<[keyof typeof ADAPTERS, string, object]>([
    ['nats', 'ackWaitMs', { stream: 's' }],
    ['redis', 'claimAfterMs', { stream: 's' }],
    ['postgres', 'pollIntervalMs', TABLE],
  ])('of %s takes a duration with a unit for %s', (name, option, options) => {
    for (const value of [1500, '30s', '2 minutes']) register(name, { ...options, [option]: value });
    for (const value of ['soon', '30 sec', 0, -1, NaN]) {
      expect(() => register(name, { ...options, [option]: value })).toThrow(option);
    }
  });
});

test.each<[keyof typeof TARGETS, object, string]>([
  ['kafka', { topics: 't' }, 'topic'],
  ['nats', { subjects: 's' }, 'subject'],
  ['rabbitMQ', { routingkey: 'k' }, 'routingKey'],
  ['redisStream', { maxLen: 1, stream: 's' }, 'maxLen'],
  ['sqs', { queueUrl: 'q', groupId: 'g' }, 'groupID'],
  ['webhook', { url: 'http://127.0.0.1', secret: `whsec_${'a'.repeat(40)}`, timeoutMs: 1 }, 'timeoutMs'],
])('a relay to %s refuses a misspelt option', (name, options, named) => {
  const create = TARGETS[name] as (...args: unknown[]) => unknown;
  const args = name === 'webhook' ? [options] : [NONE, options];

  expect(() => create(...args)).toThrow(`"${named}"`);
});

test('a route and a webhook take durations with a unit', () => {
  const dbos = createDBOS();
  const workflow = dbos.registerWorkflow(async () => {}, { name: 'workflow' });
  const routes = new WorkflowRoutes({ dbos });
  const unsigned = { id: undefined, timestamp: undefined, signature: undefined, body: '' };

  expect(() => routes.run('/now', workflow, { timeoutMs: '10s' })).not.toThrow();
  expect(() => routes.run('/then', workflow, { timeoutMs: 'soon' as never })).toThrow('timeoutMs');
  expect(() => verifyWebhook(unsigned, { secrets: 's', toleranceSeconds: '5m' }, 0)).toThrow('not signed');
  expect(() => verifyWebhook(unsigned, { secrets: 's', toleranceSeconds: '5' as never }, 0)).toThrow(
    'toleranceSeconds',
  );
});
