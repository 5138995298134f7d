import { expect, test } from 'vitest';
import { PartitionRotation } from '../../../src/engine/queues/partition-rotation.js';
import { ManualClock } from '../../rig/manual-clock.js';

const KEYS = Array.from({ length: 40 }, (_, index) => `p${index}`);

function newRotation(): PartitionRotation {
  const rotation = new PartitionRotation(new ManualClock(), () => {});
  for (const key of KEYS) rotation.add(key);
  return rotation;
}

test('an engine alone claims from partitions in the order in which it heard of them', () => {
  expect(newRotation().take(10)).toEqual(KEYS.slice(0, 10));
});

test('engines that heard of the same partitions do not all claim from the same ones', () => {
  const taken = Array.from({ length: 30 }, () => newRotation().take(10, 4));

  expect(taken.every((keys) => new Set(keys).size === 10)).toBe(true);
  // Equal picks have a probability of less than 10 to the power of -200.
  expect(new Set(taken.flat()).size).toBeGreaterThan(10);
});

test('engines that share a queue pass over the partitions that come later, and keep the order of those that they leave', () => {
  const rotation = newRotation();

  const taken = rotation.take(2, 4);

  expect(KEYS.slice(0, 8)).toEqual(expect.arrayContaining(taken));
  expect(rotation.readyKeys).toEqual(KEYS.filter((key) => !taken.includes(key)));
});

const LEFT = { isWaiting: true, hasRoom: true, waitMs: null, hasPartitionRoom: true, partitionWaitMs: null };

test('a partition that got nothing, and could have, is first in the next claim, and forgotten if it gets nothing again', () => {
  const rotation = newRotation();
  const [first = '', second = ''] = rotation.take(2);

  rotation.settle(first, { taken: 0, allowed: 5 }, LEFT);
  rotation.settle(second, { taken: 5, allowed: 5 }, LEFT);
  const next = rotation.take(1);
  rotation.settle(first, { taken: 0, allowed: 5 }, LEFT);

  expect(next).toEqual([first]);
  expect(rotation.readyKeys).toEqual([...KEYS.slice(2), second]);
});
