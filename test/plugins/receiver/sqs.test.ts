// There is no SQS here: the adapter is tested with a client that has the same interface and a queue in memory.
import { describe, expect, test } from 'vitest';
import { newID } from '../../../src/kernel/base/ids.js';
import { type SQSConsumerOptions, sqsAdapter, type SQSMessage } from '../../../src/plugins/receiver/adapters/sqs.js';
import { describeReceiver, type Rig } from './conformance.js';
import { FakeSQS } from './fake-sqs.js';

const service = new FakeSQS();
const rig: Rig<SQSMessage, SQSConsumerOptions> = {
  name: 'sqs (a fake client)',
  adapter: () => sqsAdapter(service.client()),
  async createTopic() {
    const url = `https://sqs.test/1/${newID()}`;
    service.createQueue(url);
    return url;
  },
  options: (topic) => ({ queueUrl: topic }),
  publish: async (topic, texts) => service.publish(topic, texts),
  textOf: ({ Body }) => Body ?? '',
  stop: () => service.stop(),
  start: async () => service.start(),
  missing: { options: { queueUrl: 'https://sqs.test/1/nowhere' }, says: 'does not exist' },
};
describeReceiver(rig);

describe('SQS', () => {
  const adapter = sqsAdapter(service.client());
  const message: SQSMessage = {
    queueUrl: 'https://sqs.test/1/orders.fifo',
    MessageId: 'm',
    Body: '{"a":1}',
    Attributes: { MessageGroupId: 'group' },
  };

  test('a workflow is known by the queue and the ID of the message', () => {
    expect(adapter.workflowIDOf(message, message)).toBe('sqs-orders.fifo-m');
    expect(adapter.decode(message)).toMatchObject([{ a: 1 }, { messageId: 'm' }]);
    expect(adapter.orderingKey?.({ ...message, orderByGroup: true })?.(message)).toBe('group');
    expect(adapter.orderingKey?.(message)).toBeUndefined();
  });
});
