// Several flushes of a batcher in flight. An item is `<keys>:<name>`: `ab:1` has the keys a and b. A heavy one ends in `!`.
import { describe, expect, test } from 'vitest';
import { Batcher } from '../../../src/kernel/base/batcher.js';
import { type Deferred, deferred } from '../../../src/kernel/base/deferred.js';
import { ManualClock } from '../../rig/manual-clock.js';

const PATIENCE_MS = 100;
const HEAVY = 10;

interface Flush {
  readonly items: readonly string[];
  readonly gate: Deferred<void>;
}

function setup({ flushesMax = 3, itemsMin = 2, itemsMax = 100, isWorthwhile = (): boolean => true } = {}) {
  const clock = new ManualClock();
  const flushes: Flush[] = [];
  const keysOf = (item: string): string[] => [...(item.split(':')[0] ?? '')];
  const batcher = new Batcher<string, string>({
    itemsMax,
    weigh: (item) => (item.endsWith('!') ? HEAVY : 1),
    backlogMax: 1000,
    async flush(batch) {
      const flush = { items: batch.map(({ item }) => item), gate: deferred<void>() };
      flushes.push(flush);
      await flush.gate.promise;
      for (const { item, resolve } of batch) resolve(item);
    },
    parallel: { flushesMax, keysOf, itemsMin, patienceMs: PATIENCE_MS, heavyMin: HEAVY, clock, isWorthwhile },
  });
  const submit = async (...items: string[]): Promise<void> => {
    for (const item of items) void batcher.submit(item);
    await turn();
  };
  const end = async (index: number): Promise<void> => {
    flushes[index]?.gate.resolve();
    await turn();
  };
  return { batcher, clock, submit, end, flushes: () => flushes.map(({ items }) => items) };
}

/** Lets what is due in this turn and the next happen. */
async function turn(): Promise<void> {
  for (let n = 0; n < 3; n += 1) await new Promise((resolve) => setImmediate(resolve));
}

describe('parallel flushes', () => {
  test('enough waiting items start another flush; fewer wait for the one in flight', async () => {
    const { submit, end, flushes } = setup();
    await submit('a:1');

    await submit('b:1');
    expect(flushes()).toEqual([['a:1']]);
    await submit('c:1');
    expect(flushes()).toEqual([['a:1'], ['b:1', 'c:1']]);

    await submit('d:1');
    await end(0);
    expect(flushes()).toHaveLength(2);
    await end(1);
    expect(flushes()[2]).toEqual(['d:1']);
  });

  test('others wait for a late flush no longer, and hold each other up as before', async () => {
    const { clock, submit, end, flushes } = setup({ itemsMin: 100 });
    await submit('a:1');
    await submit('b:1');
    expect(flushes()).toEqual([['a:1']]);

    clock.advance(PATIENCE_MS);
    await turn();
    expect(flushes()).toEqual([['a:1'], ['b:1']]);

    await submit('c:1');
    expect(flushes()).toHaveLength(2);
    await end(1);
    expect(flushes()[2]).toEqual(['c:1']);
    await end(2);
    await submit('d:1');
    expect(flushes()[3]).toEqual(['d:1']);
  });

  test('items with a common key are never in two flushes, and keep their order', async () => {
    const { submit, end, flushes } = setup({ itemsMin: 1 });
    await submit('a:1');

    await submit('a:2', 'ab:3', 'b:4', 'c:5');
    expect(flushes()).toEqual([['a:1'], ['c:5']]);

    await end(0);
    expect(flushes()[2]).toEqual(['a:2', 'ab:3', 'b:4']);
  });

  test('a large backlog is divided, and what belongs together stays together', async () => {
    const { submit, flushes } = setup({ itemsMin: 3 });

    await submit('a:1', 'b:1', 'c:1', 'd:1', 'e:1', 'f:1', 'a:2', 'd:2', 'g:1', 'h:1');

    expect(flushes()).toEqual([
      ['a:1', 'b:1', 'c:1', 'd:1', 'e:1', 'a:2', 'd:2'],
      ['f:1', 'g:1', 'h:1'],
    ]);
  });

  test('there are never more flushes than allowed', async () => {
    const { clock, submit, end, flushes } = setup({ flushesMax: 2, itemsMin: 1 });

    for (const item of ['a:1', 'b:1', 'c:1', 'd:1']) await submit(item);
    clock.advance(PATIENCE_MS);
    await turn();
    expect(flushes()).toEqual([['a:1'], ['b:1']]);

    await end(1);
    expect(flushes()[2]).toEqual(['c:1', 'd:1']);
  });

  test('with one flush at most, all others wait, however long it takes', async () => {
    const { clock, submit, end, flushes } = setup({ flushesMax: 1, itemsMin: 1 });
    await submit('a:1');

    await submit('b:1', 'c:1');
    clock.advance(PATIENCE_MS);
    await turn();
    expect(flushes()).toEqual([['a:1']]);

    await end(0);
    expect(flushes()[1]).toEqual(['b:1', 'c:1']);
  });

  test('no flush starts beside those in flight while it is not worthwhile', async () => {
    let isWorthwhile = false;
    const { clock, submit, flushes } = setup({ itemsMin: 1, isWorthwhile: () => isWorthwhile });
    await submit('a:1');
    await submit('b:1');
    expect(flushes()).toEqual([['a:1']]);

    isWorthwhile = true;
    clock.advance(PATIENCE_MS);
    await turn();

    expect(flushes()).toEqual([['a:1'], ['b:1']]);
  });

  test('a heavy item is flushed alone, after the light ones that were there, and none waits for it', async () => {
    const { submit, end, flushes } = setup({ itemsMin: 100 });

    await submit('a:1!', 'b:1', 'c:1');
    expect(flushes()).toEqual([['b:1', 'c:1'], ['a:1!']]);

    await end(0);
    await submit('d:1');
    expect(flushes()[2]).toEqual(['d:1']);
  });

  test('what follows a heavy item of its key waits for it, and it for what precedes it', async () => {
    const { submit, end, flushes } = setup({ itemsMin: 100 });

    await submit('a:1', 'a:2!', 'a:3', 'b:1');
    expect(flushes()).toEqual([['a:1', 'b:1']]);
    await end(0);
    expect(flushes()[1]).toEqual(['a:2!']);
    await end(1);
    expect(flushes()[2]).toEqual(['a:3']);
  });

  test('heavy items leave one flush to light ones, and their turn comes however many of those there are', async () => {
    const { submit, end, flushes } = setup({ flushesMax: 3, itemsMin: 1, itemsMax: 2 });

    await submit('a:1!', 'b:1!', 'c:1!');
    expect(flushes()).toEqual([['a:1!'], ['b:1!']]);
    await submit('d:1', 'e:1', 'f:1', 'g:1');
    expect(flushes()[2]).toEqual(['d:1', 'e:1']);

    await end(0);
    expect(flushes()[3]).toEqual(['c:1!']);
    await end(2);
    expect(flushes()[4]).toEqual(['f:1', 'g:1']);
  });

  test('a backlog that waits for one flush is not lost, nor is anything overtaken', async () => {
    const { batcher, submit, end, flushes } = setup({ itemsMin: 1, itemsMax: 700 });
    await submit('a:0');
    const items = Array.from({ length: 1500 }, (_, index) => `a:${index + 1}`);

    await submit(...items, 'b:1');
    await end(0);
    for (let index = 1; !batcher.isIdle; index += 1) await end(index);

    const written = flushes().flat();
    expect(written.filter((item) => item.startsWith('a'))).toEqual(['a:0', ...items]);
    expect(written.filter((item) => item.startsWith('b'))).toEqual(['b:1']);
  });

  test('idle and close wait for all flushes, and no timer is left', async () => {
    const { batcher, clock, submit, end } = setup({ itemsMin: 1 });
    await submit('a:1');
    await submit('b:1');
    await submit('a:2');
    let isIdle = false;
    const closed = batcher.close(new Error('closed')).then(() => (isIdle = true));

    await end(1);
    await end(0);
    expect(isIdle).toBe(false);
    await end(2);
    await closed;

    expect(isIdle).toBe(true);
    expect(clock.isArmed(PATIENCE_MS)).toBe(false);
  });
});
