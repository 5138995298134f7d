// There is no Kafka here: the adapter is tested with a client that has the same interface and a broker in memory.
import { describe, expect, test } from 'vitest';
import { newID } from '../../../src/kernel/base/ids.js';
import {
  type KafkaConsumerOptions,
  kafkaAdapter,
  type KafkaMessage,
} from '../../../src/plugins/receiver/adapters/kafka.js';
import { describeReceiver, type Rig } from './conformance.js';
import { FakeKafka } from './fake-kafka.js';

const broker = new FakeKafka();
const rig: Rig<KafkaMessage, KafkaConsumerOptions> = {
  name: 'kafka (a fake client)',
  adapter: () => kafkaAdapter(broker.client()),
  async createTopic() {
    const topic = newID();
    broker.createTopic(topic);
    return topic;
  },
  options: (topic) => ({ topics: topic, groupId: 'group' + topic }),
  publish: async (topic, texts) => broker.publish(topic, texts),
  textOf: ({ message }) => message.value?.toString() ?? '',
  stop: async () => broker.stop(),
  start: async () => broker.start(),
  missing: { options: { topics: 'nowhere' }, says: 'topic nowhere' },
};
describeReceiver(rig);

describe('Kafka', () => {
  const adapter = kafkaAdapter(broker.client());
  const message = {
    topic: 'orders',
    partition: 3,
    groupId: 'app',
    message: { offset: '42', key: null, value: Buffer.from('a') },
  } as unknown as KafkaMessage;

  test('a workflow has the ID that the receiver of DBOS gives it', () => {
    expect(adapter.workflowIDOf(message, { topics: 'orders' })).toBe('kafkajs-orders-3-app-42');
    expect(adapter.decode(message)).toEqual(['orders', 3, message.message]);
  });

  test.each([
    ['none', undefined],
    ['partition', 'app:orders:3'],
    ['topic', 'app:orders'],
  ] as const)('the key of ordering %s is %s', (ordering, key) => {
    expect(adapter.orderingKey?.({ topics: 'orders', ordering })?.(message)).toBe(key);
  });

  test('two kinds of order, and an unknown one, are refused', () => {
    expect(() => adapter.check?.({ topics: 'a', ordering: 'topic', orderingKey: () => 'k' })).toThrow(
      'exclude each other',
    );
    expect(() => adapter.check?.({ topics: 'a', ordering: 'time' as 'topic' })).toThrow('but is "time"');
  });
});
