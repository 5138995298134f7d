// Processes that fire schedules of every second, and one of them is killed while it fires. Each occurrence has one
// workflow, whoever fired it.
import { expect, test } from 'vitest';
import { createSchedule, type ScheduleDefinition } from '../../src/features/schedule/schedules.js';
import { parseCron } from '../../src/features/schedule/cron/cron.js';
import { occurrenceID } from '../../src/features/schedule/schedule.js';
import { sql, table } from '../../src/kernel/sql/sql.js';
import { findSchedules } from '../../src/features/schedule/schedules.sql.js';
import { readNow } from '../../src/database/now.js';
import { forEachDialect, type TestDialect } from '../rig/dialects.js';
import { operatorOn } from '../rig/operators.js';
import { expectAllDone } from './invariants.js';
import { linesOf } from './journal.js';
import type { KillPoint } from './kill-points.js';
import { startWorker, until, type Worker } from './processes.js';
import { withSeed } from './random.js';
import { type Scene, setScene } from './setup.js';

const SCHEDULES = { each: '* * * * * *', even: '*/2 * * * * *', odd: '1-59/2 * * * * *' } as const;

function momentsOn(dialect: TestDialect): KillPoint['moment'][] {
  return dialect.name === 'postgres' ? ['before', 'sent', 'after'] : ['before', 'after'];
}

/** Adds schedules without an engine, which would fire them. */
async function addSchedules(
  scene: Scene,
  crons: Readonly<Record<string, string>>,
  options: Partial<ScheduleDefinition> = {},
): Promise<void> {
  await scene.withDatabase(async (database) => {
    const operator = operatorOn(database, { applicationName: 'crash' });
    for (const [scheduleName, schedule] of Object.entries(crons)) {
      const definition = { scheduleName, schedule, workflowName: 'one', workflowClassName: null, ...options };
      await createSchedule(operator, definition, definition.scheduleName);
    }
  });
}

async function launch(scene: Scene, killPoints: readonly (KillPoint | undefined)[]): Promise<Worker[]> {
  const { url, journalPath } = scene;
  const workers = await Promise.all(killPoints.map((killPoint) => startWorker({ url, journalPath, killPoint })));
  // The last one may be killed while it is launched.
  for (const worker of workers.slice(0, -1)) await worker.perform({ do: 'launch' });
  workers.at(-1)?.send({ do: 'launch' });
  return workers;
}

/** The times at which a schedule was fired, and when it says it was fired last. */
async function firingsOf(scene: Scene, name: string) {
  return scene.withDatabase(async (database) => {
    const rows = await database.read(sql`
      SELECT w.workflow_uuid AS id, w.created_at AS created_at
      FROM ${table('workflow_status')} AS w
      WHERE w.schedule_name = ${name}`);
    const [schedule] = await findSchedules(database, { names: [name] });
    const firings = rows.map((row) => {
      const id = row['id'] as string;
      return { id, dueAt: Date.parse(id.slice(-24)), firedAt: Number(row['created_at']) };
    });
    return { firings: firings.sort((a, b) => a.dueAt - b.dueAt), lastFiredAt: schedule?.lastFiredAt ?? '' };
  });
}

/** All occurrences from one time to another were fired, and nothing else. */
async function expectFired(scene: Scene, name: string, cron: string, range: { from: number; to: number }) {
  const { firings, lastFiredAt } = await firingsOf(scene, name);
  const first = Math.min(range.from, firings[0]?.dueAt ?? Infinity);
  const last = Math.max(range.to, firings.at(-1)?.dueAt ?? 0);
  const expected = [...parseCron(cron).between(first - 1, last + 1)].map((dueAt) => occurrenceID(name, dueAt));
  expect(firings.map(({ id }) => id)).toEqual(expected);
  expect(lastFiredAt).toBe(new Date(firings.at(-1)?.dueAt ?? NaN).toISOString());
  return firings;
}

const now = (scene: Scene): Promise<number> => scene.withDatabase(async (database) => (await readNow(database)).now);

/** Lets some seconds pass in which everybody fires. */
async function untilFired(scene: Scene, name: string, after: number): Promise<void> {
  await until(`"${name}" is fired after ${new Date(after).toISOString()}`, async () => {
    const { lastFiredAt } = await firingsOf(scene, name);
    return Date.parse(lastFiredAt) >= after;
  });
}

async function shutDown(workers: readonly Worker[]): Promise<void> {
  await Promise.all(workers.map((worker) => worker.perform({ do: 'shutdown' })));
}

/** All that was fired ran to its end, no step of it twice unless its process was killed. */
async function expectRun(scene: Scene, victim?: Worker): Promise<void> {
  let tables = await scene.tables();
  const haveAllRun = async (): Promise<boolean> => {
    tables = await scene.tables();
    return [...tables.workflows.values()].every(({ status }) => status === 'SUCCESS');
  };
  await until('all have run', haveAllRun, {});
  // The next occurrence may have come meanwhile, also between the reading of workflows and that of steps.
  const { workflows } = tables;
  const lines = scene.journal.read().filter((line) => !('workflowID' in line) || workflows.has(line.workflowID));
  const steps = new Map([...tables.steps].filter(([, { workflowID }]) => workflows.has(workflowID)));
  expectAllDone({ workflows, steps }, lines);
  const runs = linesOf(lines, 'run').filter(({ pid }) => pid !== victim?.pid);
  expect(new Set(runs.map(({ workflowID }) => workflowID)).size).toBe(runs.length);
}

forEachDialect((dialect) => {
  test.each(momentsOn(dialect))(
    'of three processes one is killed at a firing, and no occurrence is lost or fired twice: %s',
    (moment) =>
      withSeed(async (random) => {
        const scene = await setScene(dialect);
        await addSchedules(scene, SCHEDULES);
        const killPoint = { label: 'firing', number: 1 + random.below(3), moment };
        const [first, second, victim] = await launch(scene, [undefined, undefined, killPoint]);
        const from = await now(scene);

        expect(await victim?.exited).toMatchObject({ signal: 'SIGKILL' });
        const killedAt = await now(scene);
        const to = Math.floor((killedAt + 1000) / 1000) * 1000;
        for (const name of Object.keys(SCHEDULES)) await untilFired(scene, name, to);
        await expectRun(scene, victim);
        await shutDown([first, second].filter((worker) => worker !== undefined));

        for (const [name, cron] of Object.entries(SCHEDULES)) {
          const firings = await expectFired(scene, name, cron, { from: Math.ceil(from / 1000) * 1000, to });
          for (const { dueAt, firedAt } of firings) expect(firedAt).toBeGreaterThanOrEqual(dueAt);
        }
      }),
  );

  test.each(momentsOn(dialect))(
    'the only process is killed at a firing, and those that come next go on where it was: %s',
    async (moment) => {
      const scene = await setScene(dialect);
      await addSchedules(scene, SCHEDULES, { automaticBackfill: true });
      const [victim] = await launch(scene, [{ label: 'firing', number: 2, moment }]);
      expect(await victim?.exited).toMatchObject({ signal: 'SIGKILL' });
      const killedAt = await now(scene);

      const others = await launch(scene, [undefined, undefined]);
      await untilFired(scene, 'each', killedAt + 2000);
      await expectRun(scene, victim);
      await shutDown(others);

      const from = Math.min(...(await firingsOf(scene, 'each')).firings.map(({ dueAt }) => dueAt));
      await expectFired(scene, 'each', SCHEDULES.each, { from, to: killedAt });
    },
  );

  test.each(momentsOn(dialect))(
    'a process is killed in the middle of making up for missed runs, and two others finish: %s',
    async (moment) => {
      const scene = await setScene(dialect);
      await addSchedules(scene, { missed: '* * * * * *' }, { automaticBackfill: true });
      const from = Math.floor((await now(scene)) / 1000) * 1000 - 300_000;
      await scene.withDatabase((database) =>
        database.run(sql`UPDATE ${table('workflow_schedules')} SET last_fired_at = ${new Date(from).toISOString()}`),
      );
      const [victim] = await launch(scene, [{ label: 'firing', number: 100, moment }]);
      expect(await victim?.exited).toMatchObject({ signal: 'SIGKILL' });
      const killedAt = await now(scene);

      const others = await launch(scene, [undefined, undefined]);
      await untilFired(scene, 'missed', killedAt + 1000);
      await expectRun(scene, victim);
      await shutDown(others);

      const firings = await expectFired(scene, 'missed', '* * * * * *', { from: from + 1000, to: killedAt });
      expect(firings.length).toBeGreaterThan(300);
    },
  );
});
