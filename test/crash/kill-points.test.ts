// A process is killed at each of its commits in turn: before it is sent, while it is under way, and after it. Another one
// takes the work up. A workflow that passes through everything the library records is the scenario.
import { expect, test } from 'vitest';
import { forEachDialect, type TestDialect } from '../rig/dialects.js';
import { linesOf } from './journal.js';
import type { KillPoint } from './kill-points.js';
import { crashAndFinish, finishAll, killAtEach, play, type Played, untilSessionsEnded } from './kill-scenarios.js';
import { startWorker, until } from './processes.js';
import { idsOf, type Scene, setScene } from './setup.js';
import type { Command } from './worker-process.js';

const SCENARIO: readonly Command[] = [
  { do: 'launch' },
  { do: 'start', name: 'everything', workflowIDs: ['everything'] },
  { do: 'finish' },
  // Fresh IDs: these may run while their own row is on its way.
  { do: 'start', name: 'plain', workflowIDs: [''] },
  { do: 'finish' },
  { do: 'start', name: 'one', workflowIDs: [''] },
  { do: 'finish' },
  { do: 'shutdown' },
];

const HELD_IDS = idsOf('held', 3);

const HELD: readonly Command[] = [{ do: 'launch' }, { do: 'start', name: 'held', workflowIDs: HELD_IDS }];

const RECOVERY: readonly Command[] = [...HELD, { do: 'finish' }, { do: 'shutdown' }];

const BOUNDARIES = [
  'start',
  'step checkpoint',
  'child start',
  'child result',
  'sleep record',
  'wait record',
  'outcome',
];

async function crashAndRecover(dialect: TestDialect, killPoint: KillPoint): Promise<Played> {
  const scene = await setScene(dialect);
  const played = await play(scene, killPoint, SCENARIO);

  const now = await crashAndFinish(scene, () => finishAll(scene, 'everything'));

  expect([...now.workflows.values()].filter(({ name }) => name === 'pair')).toHaveLength(2);
  return played;
}

/** A process that was killed while three workflows were in the middle of a step. */
async function leaveBehind(dialect: TestDialect): Promise<Scene> {
  const scene = await setScene(dialect);
  const worker = await startWorker({ url: scene.url, journalPath: scene.journalPath, gate: scene.gate });
  for (const command of HELD) worker.send(command);
  const heldSteps = () => linesOf(scene.journal.read(), 'step').filter(({ name }) => name === 'held');
  await until('all workflows are held', () => heldSteps().length === HELD_IDS.length);
  await worker.kill();
  await untilSessionsEnded(scene);
  return scene;
}

forEachDialect((dialect) => {
  const isPostgres = dialect.name === 'postgres';

  test.each(isPostgres ? (['before', 'sent', 'after'] as const) : (['before', 'after'] as const))(
    'a process killed at any of its commits loses and repeats nothing: %s',
    async (moment) => {
      const { commits } = await play(await setScene(dialect), { number: 0, moment }, SCENARIO);
      for (const boundary of BOUNDARIES) expect(commits.join()).toContain(boundary);

      await killAtEach(commits, moment, (killPoint) => crashAndRecover(dialect, killPoint));
    },
  );

  test.each(isPostgres ? (['sent', 'after'] as const) : (['after'] as const))(
    'a process killed at any commit of a recovery leaves all to the next one: %s',
    async (moment) => {
      const { commits } = await play(await leaveBehind(dialect), { number: 0, moment }, RECOVERY);
      for (const boundary of ['recover', 'claim']) expect(commits.join()).toContain(boundary);

      await killAtEach(commits, moment, async (killPoint) => {
        const scene = await leaveBehind(dialect);
        const played = await play(scene, killPoint, RECOVERY);
        await crashAndFinish(scene, () => finishAll(scene));
        return played;
      });
    },
  );
});
