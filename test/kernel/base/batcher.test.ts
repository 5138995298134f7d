import { describe, expect, test } from 'vitest';
import { Batcher, type BatcherOptions } from '../../../src/kernel/base/batcher.js';
import { deferred } from '../../../src/kernel/base/deferred.js';

function setup(options: Partial<BatcherOptions<number, string>> = {}) {
  const batches: number[][] = [];
  const gate = { current: Promise.resolve() };
  const batcher = new Batcher<number, string>({
    itemsMax: 100,
    backlogMax: 1000,
    async flush(batch) {
      batches.push(batch.map((entry) => entry.item));
      await gate.current;
      for (const { item, resolve, reject } of batch) {
        if (item < 0) reject(new Error(`bad ${item}`));
        else resolve(`done ${item}`);
      }
    },
    ...options,
  });
  return { batcher, batches, gate };
}

describe('Batcher', () => {
  test('what is submitted in one turn shares a flush, in order', async () => {
    const { batcher, batches } = setup();

    const results = await Promise.all([1, 2, 3].map((item) => batcher.submit(item)));

    expect(results).toEqual(['done 1', 'done 2', 'done 3']);
    expect(batches).toEqual([[1, 2, 3]]);
  });

  test('what arrives during a flush forms the next one', async () => {
    const { batcher, batches, gate } = setup();
    const blocked = deferred<void>();
    gate.current = blocked.promise;
    const early = batcher.submit(1);
    await new Promise((resolve) => setImmediate(resolve));

    const late = [batcher.submit(2), batcher.submit(3)];
    blocked.resolve();
    await Promise.all([early, ...late]);

    expect(batches).toEqual([[1], [2, 3]]);
  });

  test('a rejected item leaves its neighbours alone', async () => {
    const { batcher } = setup();

    const results = await Promise.allSettled([1, -2, 3].map((item) => batcher.submit(item)));

    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  });

  test('a flush that throws rejects its items, and the next flush goes on', async () => {
    let isBroken = true;
    const { batcher } = setup({
      async flush(batch) {
        if (isBroken) throw new Error('no database');
        for (const { resolve } of batch) resolve('done');
      },
    });

    await expect(batcher.submit(1)).rejects.toThrow('no database');
    isBroken = false;

    await expect(batcher.submit(2)).resolves.toBe('done');
  });

  test('a flush is bounded in items and in weight, and a single heavy item still goes', async () => {
    const { batcher, batches } = setup({ itemsMax: 3, weightMax: 10, weigh: (item) => item });

    await Promise.all([1, 1, 1, 1, 9, 50, 2].map((item) => batcher.submit(item)));

    expect(batches).toEqual([[1, 1, 1], [1, 9], [50], [2]]);
  });

  test('room is given when the backlog is below its bound again', async () => {
    const { batcher, gate } = setup({ backlogMax: 2, itemsMax: 1 });
    const blocked = deferred<void>();
    gate.current = blocked.promise;
    expect(batcher.room()).toBeUndefined();
    const submitted = [1, 2, 3].map((item) => batcher.submit(item));
    let hasRoom = false;
    const room = batcher.room()?.then(() => (hasRoom = true));
    await new Promise((resolve) => setImmediate(resolve));
    expect(hasRoom).toBe(false);

    blocked.resolve();
    await room;

    expect(hasRoom).toBe(true);
    await Promise.all(submitted);
  });

  test('close flushes what was accepted, refuses the rest, and wakes those who wait for room', async () => {
    const { batcher, batches } = setup({ backlogMax: 1 });
    const accepted = batcher.submit(1);
    const room = batcher.room();

    await batcher.close(new Error('closed'));

    await expect(accepted).resolves.toBe('done 1');
    await expect(room).resolves.toBeUndefined();
    await expect(batcher.submit(2)).rejects.toThrow('closed');
    expect(batches).toEqual([[1]]);
  });

  test('close of an idle batcher returns at once, also twice', async () => {
    const { batcher } = setup();

    await batcher.close(new Error('closed'));
    await batcher.close(new Error('closed again'));

    await expect(batcher.submit(1)).rejects.toThrow('closed');
  });
});
