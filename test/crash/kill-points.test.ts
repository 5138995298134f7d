// A process is killed at each of its commits in turn: before it is sent, while it is under way, and after it. Another one
// takes the work up. A workflow that passes through everything the library records is the scenario.
import { expect, test } from 'vitest';
import { sql } from '../../src/sql/sql.js';
import { forEachDialect, type TestDialect } from '../rig/dialects.js';
import { expectAllDone, expectGivenIsDurable, expectKept, type Tables } from './invariants.js';
import { type Line, linesOf } from './journal.js';
import type { KillPoint } from './kill-points.js';
import { startWorker, until } from './processes.js';
import { idsOf, launchHere, type Scene, setScene } from './setup.js';
import type { Command } from './worker-process.js';
import type { WorkflowName } from './workflows.js';

const IN_PARALLEL = 4;

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

interface Played {
  readonly wasKilled: boolean;
  readonly commits: readonly string[];
}

/** Lets a process play a scenario up to its kill point, and waits until nothing of it is left. */
async function play(scene: Scene, killPoint: KillPoint, scenario = SCENARIO): Promise<Played> {
  const worker = await startWorker({ url: scene.url, journalPath: scene.journalPath, killPoint });
  for (const command of scenario) worker.send(command);
  const { code, signal } = await worker.exited;
  if (signal !== 'SIGKILL') expect(code, worker.log()).toBe(0);
  await untilSessionsEnded(scene);
  const commits = linesOf(scene.journal.read(), 'commit').map(({ label }) => label);
  return { wasKilled: signal === 'SIGKILL', commits };
}

/** A server may still be at work on the last request of a client that is gone. */
async function untilSessionsEnded(scene: Scene): Promise<void> {
  if (!scene.url.startsWith('postgres')) return;
  await scene.withDatabase((database) =>
    until('the sessions of the killed process have ended', async () => {
      const rows = await database.read(sql`
        SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'everstep_crash'`);
      return rows.length === 0;
    }),
  );
}

async function crashAndRecover(dialect: TestDialect, killPoint: KillPoint): Promise<boolean> {
  const scene = await setScene(dialect);
  const played = await play(scene, killPoint);

  const now = await crashAndFinish(scene, () => finishAll(scene, 'everything'));

  expect([...now.workflows.values()].filter(({ name }) => name === 'pair')).toHaveLength(2);
  return played.wasKilled;
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

/** What holds between the moment of a kill and the end that `finish` brings about. */
async function crashAndFinish(scene: Scene, finish: () => Promise<void>): Promise<Tables> {
  const linesThen: readonly Line[] = scene.journal.read();
  const then = await scene.tables();

  await finish();

  const lines = scene.journal.read();
  const now = await scene.tables();
  expectGivenIsDurable(then, linesThen);
  expectKept(then, now, lines.slice(linesThen.length));
  expectAllDone(now, lines);
  return now;
}

/** Takes over in this process and brings all to the end, a workflow that was perhaps never started included. */
async function finishAll(scene: Scene, wanted?: WorkflowName): Promise<void> {
  const { steps } = await scene.tables();
  const hasSleepRecord = [...steps.values()].some(({ name }) => name === 'DBOS.sleep');
  // A sleep that was begun anew would last longer than the test.
  const { DBOS, workflows } = await launchHere(scene, {}, hasSleepRecord ? { sleepMs: 3_600_000 } : {});
  if (wanted !== undefined) await DBOS.startWorkflow(workflows[wanted], { workflowID: wanted })();
  const { workflows: left } = await scene.tables();
  for (const workflowID of left.keys()) {
    const value = await DBOS.retrieveWorkflow(workflowID).getResult();
    scene.journal.write({ kind: 'result', workflowID, value });
  }
  await DBOS.shutdown();
}

async function inParallel<T>(items: readonly T[], body: (item: T) => Promise<void>): Promise<void> {
  const waiting = [...items];
  const serve = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await body(item);
  };
  await Promise.all(Array.from({ length: IN_PARALLEL }, serve));
}

/** Kills at each commit that the undisturbed run had, and checks how many kills there were. */
async function killAtEach(
  commits: readonly string[],
  moment: KillPoint['moment'],
  crash: (killPoint: KillPoint) => Promise<boolean>,
): Promise<void> {
  let kills = 0;
  const numbers = commits.map((_, index) => index + 1);
  await inParallel(numbers, async (number) => {
    try {
      if (await crash({ number, moment })) kills += 1;
    } catch (error) {
      const what = `Killed ${moment} commit ${number} (${commits[number - 1]})`;
      throw new Error(`${what}: ${(error as Error).message}`, { cause: error });
    }
  });
  // Under load, two checkpoints may share a commit that had one each in the run that was counted.
  expect(kills).toBeGreaterThanOrEqual(numbers.length - 2);
}

forEachDialect((dialect) => {
  const isPostgres = dialect.name === 'postgres';

  test.each(isPostgres ? (['before', 'sent', 'after'] as const) : (['before', 'after'] as const))(
    'a process killed at any of its commits loses and repeats nothing: %s',
    { timeout: 120_000 },
    async (moment) => {
      const { commits } = await play(await setScene(dialect), { number: 0, moment });
      for (const boundary of BOUNDARIES) expect(commits.join()).toContain(boundary);

      await killAtEach(commits, moment, (killPoint) => crashAndRecover(dialect, killPoint));
    },
  );

  test.each(isPostgres ? (['sent', 'after'] as const) : (['after'] as const))(
    'a process killed at any commit of a recovery leaves all to the next one: %s',
    { timeout: 120_000 },
    async (moment) => {
      const { commits } = await play(await leaveBehind(dialect), { number: 0, moment }, RECOVERY);
      for (const boundary of ['recover', 'claim']) expect(commits.join()).toContain(boundary);

      await killAtEach(commits, moment, async (killPoint) => {
        const scene = await leaveBehind(dialect);
        const { wasKilled } = await play(scene, killPoint, RECOVERY);
        await crashAndFinish(scene, () => finishAll(scene));
        return wasKilled;
      });
    },
  );
});
