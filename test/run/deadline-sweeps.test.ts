import { describe, expect, onTestFinished, test } from 'vitest';
import { silentLogger } from '../../src/kernel/base/log.js';
import { Deadlines, type DeadlinesOptions } from '../../src/run/deadlines.js';
import { ManualClock, until } from '../rig/manual-clock.js';

/** After a sweep that failed, and when there is no deadline, both with the grace of 50 ms. */
const AFTER_FAILURE_MS = 1050;
const AFTER_NONE_MS = 30_000;

/** Sweeps over a database that gives these answers, and the last of them ever after. */
function setup(...answers: readonly (Error | readonly object[])[]) {
  const clock = new ManualClock();
  const looks = { times: 0 };
  const database = {
    async read() {
      looks.times += 1;
      const answer = answers[Math.min(looks.times, answers.length) - 1];
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  const deadlines = new Deadlines({
    runtime: { clock, logger: silentLogger, bus: {}, database },
    runs: { observe() {} },
    ownership: { async verify() {}, async requeueOrphans() {} },
  } as unknown as DeadlinesOptions);
  onTestFinished(() => deadlines.stop());
  deadlines.start();
  return { clock, deadlines, looks };
}

async function advanceOnce(clock: ManualClock, ms: number): Promise<void> {
  await until(() => clock.isArmed(ms));
  clock.advance(ms);
}

describe('the sweep of deadlines', () => {
  test('looks again after a look that failed', async () => {
    const { clock, looks } = setup(new Error('down'), []);

    await advanceOnce(clock, AFTER_FAILURE_MS);

    await until(() => looks.times === 2);
  });

  test('looks no more once there is none, until it hears of one', async () => {
    const { clock, deadlines, looks } = setup([]);
    await advanceOnce(clock, AFTER_NONE_MS);
    await until(() => clock.isArmed(AFTER_NONE_MS));
    expect(looks.times).toBe(1);

    deadlines.wakeFor(1000);

    await until(() => looks.times === 2);
  });

  test('looks again if it heard of one during the look', async () => {
    const { clock, deadlines, looks } = setup([]);
    await until(() => looks.times === 1);

    deadlines.wake();

    await until(() => looks.times === 2);
    await until(() => clock.isArmed(AFTER_NONE_MS));
  });
});
