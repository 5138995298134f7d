import { describe, expect, onTestFinished, test } from 'vitest';
import { DueLoop } from '../../../src/kernel/base/due-loop.js';
import { silentLogger } from '../../../src/kernel/base/log.js';
import { ManualClock, until } from '../../rig/manual-clock.js';

const MAX_MS = 60_000;

/** A loop that has swept once, and sleeps until its next item is due. */
async function setup(nextMs: number | undefined) {
  const clock = new ManualClock();
  const swept = { times: 0 };
  const sweep = async (): Promise<number | undefined> => {
    swept.times += 1;
    return nextMs;
  };
  const loop = new DueLoop({ clock, logger: silentLogger, subject: 'Items', sweep, maxMs: MAX_MS, graceMs: 50 });
  onTestFinished(() => loop.stop());
  loop.start();
  await until(() => clock.isArmed(Math.min((nextMs || MAX_MS) + 50, MAX_MS)));
  return { clock, loop, swept };
}

/** Many turns, in which a loop that was woken would have swept. */
async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

describe('a loop that hears of an item', () => {
  test('wakes if it would sleep past it', async () => {
    const { loop, swept } = await setup(undefined);

    loop.wakeFor(5000);

    await until(() => swept.times === 2);
  });

  test('wakes if the item is overdue: the machine may have been suspended', async () => {
    const { clock, loop, swept } = await setup(1000);
    clock.advance(500);

    loop.wakeFor(0);

    await until(() => swept.times === 2);
  });

  test.each([3_600_000, -3_600_000])('wakes if the clock was set by %i ms meanwhile', async (byMs) => {
    const { clock, loop, swept } = await setup(undefined);
    clock.set(byMs);

    loop.wakeFor(5000);

    await until(() => swept.times === 2);
  });

  test('sleeps on if the item has no time', async () => {
    const { loop, swept } = await setup(5000);

    loop.wakeFor(NaN);
    await turns();

    expect(swept.times).toBe(1);
  });

  test('looks now and then for an item that has no time', async () => {
    const { clock, swept } = await setup(NaN);
    await turns();
    expect(swept.times).toBe(1);

    clock.advance(MAX_MS);

    await until(() => swept.times === 2);
  });

  test('sleeps on if it knows of it', async () => {
    const { clock, loop, swept } = await setup(5000);
    clock.advance(2000);

    loop.wakeFor(3000);
    loop.wakeFor(2990);
    loop.wakeFor(9000);

    await turns();
    expect(swept.times).toBe(1);
  });
});
