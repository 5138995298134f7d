import { expect, test } from 'vitest';
import { type SlotHolder, Slots } from '../../src/run/slots.js';

const holder = (workflowID: string, fields: Partial<SlotHolder> = {}): SlotHolder => ({
  workflowID,
  owner: 'me.1',
  queueName: 'q',
  partitionKey: null,
  ...fields,
});

test('a slot that is reserved is not free, until it is given back, once', () => {
  const slots = new Slots(10);

  const giveBack = slots.reserve(4);
  expect(slots.free).toBe(6);
  giveBack();
  giveBack();

  expect(slots.free).toBe(10);
});

test('a workflow has one slot, however often it takes and gives up one', () => {
  const slots = new Slots(10);

  for (let n = 0; n < 2; n += 1) slots.fill(holder('a'));
  slots.fill(holder('b', { partitionKey: 'p' }));
  expect([slots.free, slots.count('q'), slots.count('q', 'p')]).toEqual([8, 2, 1]);
  for (let n = 0; n < 2; n += 1) slots.release(holder('b', { partitionKey: 'p' }));

  expect([slots.free, slots.count('q'), slots.count('q', 'p')]).toEqual([9, 1, 0]);
});

test('two runs of one workflow have a slot each', () => {
  const slots = new Slots(10);

  for (const owner of ['me.1', 'me.2']) slots.fill(holder('a', { owner }));
  slots.release(holder('a'));

  expect(slots.count('q')).toBe(1);
});

test('a workflow that waits leaves its slot in the process, but not in its queue', () => {
  const slots = new Slots(10);
  slots.fill(holder('a'));

  slots.setWaiting(holder('a'), true);
  slots.setWaiting(holder('unknown'), true);
  expect([slots.free, slots.count('q')]).toEqual([10, 1]);
  slots.setWaiting(holder('a'), false);
  expect(slots.free).toBe(9);
  slots.setWaiting(holder('a'), true);
  slots.release(holder('a'));

  expect([slots.free, slots.count('q')]).toEqual([10, 0]);
});

test('a workflow without a queue needs none', () => {
  const slots = new Slots(10);

  slots.fill(holder('a', { queueName: null }));

  expect(slots.free).toBe(10);
});
