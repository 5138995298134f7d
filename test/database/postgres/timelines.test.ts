// Promotions as a process sees them by the timelines of its connections.
import { describe, expect, test, vi } from 'vitest';
import { deferred } from '../../../src/kernel/base/deferred.js';
import { DatabaseUnavailableError } from '../../../src/kernel/errors/database-errors.js';
import type { Executor } from '../../../src/database/database.js';
import { Timelines } from '../../../src/database/postgres/timelines.js';

const TX = {} as Executor;

/** A process that has seen the second timeline after the first. */
function promoted() {
  const timelines = new Timelines();
  const act = vi.fn();
  const compare = vi.fn(async () => act);
  timelines.onPromoted = compare;
  timelines.see('00000001', 'one');
  expect(timelines.isPending).toBe(false);
  timelines.see('00000002', 'two');
  expect(timelines.isPending).toBe(true);
  return { timelines, compare, act };
}

test('a promotion is compared once, and acted upon after the commit', async () => {
  const { timelines, compare, act } = promoted();
  const committed = deferred<void>();
  const settle = () =>
    timelines.settle('00000002', async (body) => {
      const result = await body(TX);
      await committed.promise;
      return result;
    });

  const settled = Promise.all([settle(), settle()]);
  await vi.waitUntil(() => compare.mock.calls.length > 0);
  expect(act).not.toHaveBeenCalled();
  committed.resolve();
  await settled;

  expect([compare.mock.calls.length, act.mock.calls.length]).toEqual([1, 1]);
  expect(timelines.isPending).toBe(false);
});

test('a comparison that is not committed is made again', async () => {
  const { timelines, compare, act } = promoted();

  const lost = timelines.settle('00000002', async (body) => {
    await body(TX);
    throw new Error('lost');
  });
  await expect(lost).rejects.toThrow('lost');
  expect([timelines.isPending, act.mock.calls.length]).toEqual([true, 0]);
  await timelines.settle('00000002', (body) => body(TX));

  expect([compare.mock.calls.length, act.mock.calls.length]).toEqual([2, 1]);
  expect(timelines.isPending).toBe(false);
});

test('a connection to the former primary is not compared with', () => {
  const { timelines, compare } = promoted();

  expect(() => timelines.settle('00000001', (body) => body(TX))).toThrow(DatabaseUnavailableError);
  expect(() => timelines.see('00000001', 'one')).toThrow(/former primary/);

  expect(compare).not.toHaveBeenCalled();
  expect(timelines.isPending).toBe(true);
});

describe('a cluster that is another one', () => {
  /** A process whose tables were on the third timeline of cluster 7 and are on the first one of cluster 8. */
  function moved() {
    const timelines = new Timelines();
    timelines.onPromoted = async () => () => {};
    timelines.see('7/00000003', 'one');
    const { reign } = timelines;
    timelines.see('8/00000001', 'two');
    return { timelines, reign };
  }

  test('is compared with like a promoted server, though its timeline is lower', async () => {
    const { timelines, reign } = moved();

    expect([timelines.isPending, reign.aborted]).toEqual([true, true]);
    expect(timelines.isFormer('7/00000003')).toBe(true);
    await timelines.settle('8/00000001', (body) => body(TX));

    expect(timelines.isPending).toBe(false);
    expect(timelines.isFormer('8/00000001')).toBe(false);
    expect(() => timelines.see('7/00000004', 'one')).toThrow(/tables were moved to another cluster/);
  });

  test('is left again if it was reached by mistake, and nothing was done there', async () => {
    const { timelines } = moved();

    timelines.see('7/00000003', 'one');
    await timelines.settle('7/00000003', (body) => body(TX));

    expect([timelines.isPending, timelines.isFormer('8/00000001')]).toEqual([false, true]);
  });

  test('is not taken for one by servers that do not tell', () => {
    const { timelines } = moved();

    expect(timelines.isFormer('00000001')).toBe(false);
    expect(() => timelines.see('00000000', 'three')).toThrow(/another server was promoted/);
  });

  test('is chosen among several hosts only without the present one', () => {
    const timelines = new Timelines();
    const [replica, former, present] = ['8/00000009', '7/00000002', '7/00000003'].map((server) => ({ server }));
    expect(timelines.newest([former!, replica!, present!])).toBe(present);

    timelines.see('7/00000003', 'one');

    expect(timelines.newest([replica!, present!])).toBe(present);
    expect(timelines.newest([replica!])).toBe(replica);
    expect(timelines.newest([])).toBeUndefined();
  });
});

test('a promotion during a comparison is compared too', async () => {
  const { timelines } = promoted();

  await timelines.settle('00000002', (body) => {
    timelines.see('00000003', 'three');
    return body(TX);
  });

  expect(timelines.isPending).toBe(true);
});
