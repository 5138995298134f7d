import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Offers } from '../../../src/features/queue/offers.run.js';
import type { Announcement, Claimed } from '../../../src/database/notify/topics.js';
import { ManualClock } from '../../rig/manual-clock.js';

const LONG_MS = 60_000;

/** One of many engines, which draws this random number. */
function setup({ peers = 47, ability = 'v1', random = 0.5 } = {}) {
  const spy = vi.spyOn(Math, 'random').mockReturnValue(random);
  onTestFinished(() => spy.mockRestore());
  const clock = new ManualClock();
  const due: Announcement[] = [];
  const reported: Claimed[] = [];
  const offers = new Offers({
    clock,
    peers: () => Array.from({ length: peers }, (_, index) => `e${index}`),
    ability: () => ability,
    onDue: (announced) => due.push(announced),
    onClaimed: (claimed) => reported.push(claimed),
  });
  return { clock, due, offers, reported, claimed: (...names: string[]) => ({ queueName: 'q', names, ability: 'v1' }) };
}

describe('work that another process announces', () => {
  test('is claimed at once where few engines serve its queue', () => {
    const { due, offers } = setup({ peers: 3 });

    offers.add({ queueName: 'q', name: 'a' });

    expect(due).toEqual([{ queueName: 'q', name: 'a' }]);
  });

  test('is claimed after a random time where many do, most of them late', () => {
    const waits = Array.from({ length: 48 }, (_, index) => {
      const { clock, due, offers } = setup({ random: index / 48 });
      offers.add({ queueName: 'q', name: 'a' });
      let ms = 0;
      for (; due.length === 0; ms += 1) clock.advance(1);
      return ms;
    });

    const counts = [0, 8, 16, 24, 32, 40].map((ms) => waits.filter((wait) => wait === ms).length);
    expect(counts).toEqual([1, 2, 4, 8, 16, 17]);
  });

  test('is claimed with what was announced after it', () => {
    const { clock, due, offers } = setup();

    offers.add({ queueName: 'q', name: 'a' });
    offers.add({ queueName: 'q', name: 'b' });
    expect(due).toEqual([]);
    clock.advance(LONG_MS);

    expect(due).toEqual([
      { queueName: 'q', name: 'a' },
      { queueName: 'q', name: 'b' },
    ]);
  });

  test('is left alone once an engine that can run the same has claimed it', () => {
    const { clock, due, offers, claimed } = setup();

    offers.add({ queueName: 'q', name: 'a' });
    offers.add({ queueName: 'q', partitionKey: 'p', name: 'b' });
    offers.withdraw(claimed('a', 'b'));
    clock.advance(LONG_MS);

    expect(due).toEqual([{ queueName: 'q', partitionKey: 'p', name: 'b' }]);
  });

  test.each<[string, Announcement[], (claimed: Claimed) => Claimed]>([
    ['an engine of another ability', [{ queueName: 'q', name: 'a' }], (claimed) => ({ ...claimed, ability: 'v2' })],
    ['other work', [{ queueName: 'q', name: 'b' }], (claimed) => claimed],
    ['the work of another queue', [{ queueName: 'q', name: 'a' }], (claimed) => ({ ...claimed, queueName: 'r' })],
    ['what has a name, but not all has', [{ queueName: 'q', name: 'a' }, { queueName: 'q' }], (claimed) => claimed],
    [
      'what came before the last',
      [
        { queueName: 'q', name: 'a' },
        { queueName: 'q', name: 'later' },
      ],
      (claimed) => claimed,
    ],
  ])('is claimed although %s was claimed', (_, announced, change) => {
    const { clock, due, offers, claimed } = setup();

    for (const one of announced) offers.add(one);
    offers.withdraw(change(claimed('a')));
    clock.advance(LONG_MS);

    expect(due).toHaveLength(1);
  });

  test('is claimed once more if more of it is announced than can be remembered', () => {
    const { clock, due, offers, claimed } = setup();
    const names = Array.from({ length: 500 }, (__, index) => `n${index}`);

    for (const name of names) offers.add({ queueName: 'q', name });
    offers.withdraw(claimed(...names));
    clock.advance(LONG_MS);

    expect(due).toEqual([{ queueName: 'q', name: undefined }]);
  });

  test('in very many partitions is not remembered for ever', () => {
    const { due, offers } = setup();

    for (let n = 0; n < 2000; n += 1) offers.add({ queueName: 'q', partitionKey: `p${n}`, name: 'a' });
    expect(due).toHaveLength(1000);
    offers.stop();
  });
});

test('peers hear of a claim only if they are many', () => {
  const few = setup({ peers: 3 });
  const many = setup({ peers: 4 });

  for (const { offers } of [few, many]) offers.report({ queueName: 'q' }, ['a']);
  many.offers.report({ queueName: 'q' }, []);

  expect(few.reported).toEqual([]);
  expect(many.reported).toEqual([{ queueName: 'q', names: ['a'], ability: 'v1' }]);
});
