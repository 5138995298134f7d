// Promotions as a process sees them by the timelines of its connections.
import { expect, test, vi } from 'vitest';
import { deferred } from '../../../src/base/deferred.js';
import { DatabaseUnavailableError } from '../../../src/model/errors/database-errors.js';
import type { Executor } from '../../../src/store/database.js';
import { Timelines } from '../../../src/store/postgres/timelines.js';

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

test('a promotion during a comparison is compared too', async () => {
  const { timelines } = promoted();

  await timelines.settle('00000002', (body) => {
    timelines.see('00000003', 'three');
    return body(TX);
  });

  expect(timelines.isPending).toBe(true);
});
