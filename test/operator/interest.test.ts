import { expect, test } from 'vitest';
import { Interest } from '../../src/operator/interest.js';
import { type Bus, PAYLOAD_MAX_BYTES } from '../../src/database/notify/bus.js';
import { topics } from '../../src/database/notify/topics.js';

function setup(isNotifying = true) {
  const sent: string[] = [];
  const publishElsewhere = (_: unknown, workflowIDs: readonly string[]) =>
    void sent.push(topics.interest.encode(workflowIDs));
  const interest = new Interest({ isNotifying, publishElsewhere } as unknown as Bus);
  return { interest, sent };
}

test('what is waited for in one turn shares notifications, each of which can be sent', async () => {
  const { interest, sent } = setup();
  const workflowIDs = Array.from({ length: 5000 }, (_, n) => `workflow-of-a-user-${n}-"ü"`);

  for (const workflowID of [...workflowIDs, ...workflowIDs]) interest.announce(workflowID);
  await Promise.resolve();

  expect(sent.flatMap((text) => topics.interest.decode(text))).toEqual(workflowIDs);
  expect(sent.length).toBeLessThan(50);
  expect(Math.max(...sent.map((text) => Buffer.byteLength(text)))).toBeLessThanOrEqual(PAYLOAD_MAX_BYTES);
});

test('each turn has its own', async () => {
  const { interest, sent } = setup();

  interest.announce('a');
  await Promise.resolve();
  interest.announce('b');
  await Promise.resolve();

  expect(sent).toEqual(['["a"]', '["b"]']);
});

test('nothing is kept where commits are noticed without notifications', async () => {
  const { interest, sent } = setup(false);

  interest.announce('a');
  await Promise.resolve();

  expect(sent).toEqual([]);
});
