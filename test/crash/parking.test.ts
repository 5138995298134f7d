// A process whose workflows park is killed at each of its commits in turn: while they leave memory, while they are away, and
// when they are woken. Another one brings them to their end.
import { expect, test } from 'vitest';
import { forEachDialect, type TestDialect } from '../rig/dialects.js';
import { type KillPoint, TRANSACTION } from './kill-points.js';
import { crashAndFinish, finishAll, killAtEach, play, type Played } from './kill-scenarios.js';
import { setScene } from './setup.js';
import type { Command } from './worker-process.js';

/** The child parks until its sleep ends, and the parent until the child ends. */
const SCENARIO: readonly Command[] = [
  { do: 'launch' },
  { do: 'start', name: 'guardian', workflowIDs: ['guardian'] },
  { do: 'finish' },
  { do: 'shutdown' },
];
const PARKING = { parkAfterMs: 100, sleepMs: 2500 };
/** So long that they park also if the process is delayed by some seconds. */
const SURE_PARKING = { ...PARKING, sleepMs: 8000 };

async function crashAndRecover(dialect: TestDialect, killPoint: KillPoint, settings = PARKING): Promise<Played> {
  const scene = await setScene(dialect);
  const played = await play(scene, killPoint, SCENARIO, settings);
  const { parkAfterMs } = PARKING;
  await crashAndFinish(scene, () => finishAll(scene, 'guardian', { parkAfterMs }));
  return played;
}

forEachDialect((dialect) => {
  test('parked workflows survive a kill at any commit', async () => {
    const moment = dialect.name === 'postgres' ? 'sent' : 'after';
    const { commits } = await play(await setScene(dialect), { number: 0, moment }, SCENARIO, SURE_PARKING);
    expect(commits).toContain('park');

    await killAtEach(commits, moment, (killPoint) => crashAndRecover(dialect, killPoint));
  });

  test('so does one that waits for a child, killed in the transaction that parks it', async () => {
    const played = await Promise.all(
      (['sent', 'after'] as const).map((moment) =>
        crashAndRecover(dialect, { number: 1, label: TRANSACTION, moment }, SURE_PARKING),
      ),
    );

    expect(played).toMatchObject([{ wasKilled: true }, { wasKilled: true }]);
  });
});
