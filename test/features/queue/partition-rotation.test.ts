import { expect, onTestFinished, test, vi } from 'vitest';
import { PartitionRotation } from '../../../src/features/queue/partition-rotation.run.js';
import { ManualClock } from '../../rig/manual-clock.js';

const KEYS = Array.from({ length: 40 }, (_, index) => `p${index}`);

function newRotation(clock = new ManualClock()): PartitionRotation {
  const rotation = new PartitionRotation(
    clock,
    () => {},
    () => 1000,
  );
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

test('a partition that got nothing, and could have, has one more turn, and is forgotten if it gets nothing again', () => {
  const rotation = newRotation();
  const [first = '', second = ''] = rotation.take(2);
  rotation.settle(first, 0, LEFT);
  rotation.settle(second, 5, LEFT);
  const others = KEYS.slice(2);
  expect(rotation.readyKeys).toEqual([...others, first, second]);

  rotation.take(KEYS.length);
  for (const key of [...others, second]) rotation.settle(key, 1, LEFT);
  rotation.settle(first, 0, LEFT);

  expect(rotation.readyKeys).toEqual([...others, second]);
});

test('a partition that is announced during its turn goes to the end all the same', () => {
  const rotation = newRotation();
  const [first = '', second = ''] = rotation.take(2);
  rotation.add(second);
  rotation.add(first);

  rotation.settle(first, 1, { ...LEFT, isWaiting: false });
  rotation.settle(second, 1, { ...LEFT, hasPartitionRoom: false });

  expect(rotation.readyKeys).toEqual([...KEYS.slice(2), first, second]);
});

test('a slot of a partition in which work of other programs waits is left to them for two polls at most', () => {
  const spy = vi.spyOn(Math, 'random').mockReturnValue(0.75);
  onTestFinished(() => spy.mockRestore());
  const clock = new ManualClock();
  const rotation = newRotation(clock);
  const [first = '', second = ''] = rotation.take(2);
  const full = { ...LEFT, hasPartitionRoom: false };
  rotation.settle(first, 1, { ...full, others: { spare: null } });
  rotation.settle(second, 1, full);

  expect([rotation.slotFreed(first), rotation.slotFreed(second)]).toEqual([true, false]);
  // More work is announced.
  rotation.add(first);
  expect([rotation.readyKeys.includes(first), rotation.readyKeys.includes(second)]).toEqual([false, true]);
  clock.advance(1499);
  expect(rotation.readyKeys).not.toContain(first);
  clock.advance(1);

  expect(rotation.readyKeys).toContain(first);
});
