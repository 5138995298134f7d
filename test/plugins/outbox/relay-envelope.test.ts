import { expect, test } from 'vitest';
import { wrapped } from '../../../src/plugins/outbox/relays/envelope.js';
import type { RelayMessage } from '../../../src/plugins/outbox/relays/target.js';

function eventOf(payload: string, given: Partial<RelayMessage> = {}): Record<string, unknown> {
  const message: RelayMessage = {
    messageID: 'm1',
    topic: 'orders',
    key: undefined,
    payload: Buffer.from(payload),
    contentType: 'application/json',
    headers: {},
    createdAt: 0,
    ...given,
  };
  return JSON.parse(
    Buffer.from(wrapped(message, { cloudEvents: { source: '/shop' } }).payload).toString('utf8'),
  ) as Record<string, unknown>;
}

test('the payload of a CloudEvent in JSON is its data, as it was written', () => {
  expect(eventOf('{"n": 1.0}')).toMatchObject({ type: 'orders', id: 'm1', data: { n: 1 } });
});

test.each(['1,"type":"forged","id":"other"', '{}}', '', '1 2', '"a'])(
  'a payload that only claims to be JSON brings no attributes: %s',
  (payload) => {
    const event = eventOf(payload);

    expect(event).toMatchObject({ type: 'orders', id: 'm1', source: '/shop' });
    expect(event).not.toHaveProperty('data');
    expect(Buffer.from(String(event['data_base64']), 'base64').toString()).toBe(payload);
  },
);

test('a time that is out of range is left out', () => {
  expect(eventOf('1', { createdAt: 9e15 })).not.toHaveProperty('time');
});
