// Lets processes play a scenario up to the commit at which they are killed, and another one finish what they left.
import { expect } from 'vitest';
import type { DBOSConfig } from '../../src/run/config/config.js';
import { sql } from '../../src/kernel/sql/sql.js';
import { expectAllDone, expectGivenIsDurable, expectKept, type Tables } from './invariants.js';
import { type Line, linesOf } from './journal.js';
import type { KillPoint } from './kill-points.js';
import { startWorker, until } from './processes.js';
import { launchHere, type Scene } from './setup.js';
import type { Command, WorkerSettings } from './worker-process.js';
import type { WorkflowName } from './workflows.js';

const IN_PARALLEL = 4;

export interface Played {
  readonly wasKilled: boolean;
  readonly commits: readonly string[];
}

/** Lets a process play a scenario up to its kill point, and waits until nothing of it is left. */
export async function play(
  scene: Scene,
  killPoint: KillPoint,
  scenario: readonly Command[],
  settings: Pick<WorkerSettings, 'history' | 'parkAfterMs' | 'sleepMs'> = {},
): Promise<Played> {
  const worker = await startWorker({ url: scene.url, journalPath: scene.journalPath, killPoint, ...settings });
  for (const command of scenario) worker.send(command);
  const { code, signal } = await worker.exited;
  if (signal !== 'SIGKILL') expect(code, worker.log()).toBe(0);
  await untilSessionsEnded(scene);
  const commits = linesOf(scene.journal.read(), 'commit').map(({ label }) => label);
  return { wasKilled: signal === 'SIGKILL', commits };
}

/** A server may still be at work on the last request of a client that is gone. */
export async function untilSessionsEnded(scene: Scene): Promise<void> {
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

/** What holds between the moment of a kill and the end that `finish` brings about. */
export async function crashAndFinish(scene: Scene, finish: () => Promise<void>): Promise<Tables> {
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
export async function finishAll(scene: Scene, wanted?: WorkflowName, config: Partial<DBOSConfig> = {}): Promise<void> {
  const { steps } = await scene.tables();
  const hasSleepRecord = [...steps.values()].some(({ name }) => name === 'DBOS.sleep');
  // A sleep that was begun anew would last longer than the test.
  const { DBOS, workflows } = await launchHere(scene, config, hasSleepRecord ? { sleepMs: 3_600_000 } : {});
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

/** Kills at each commit that the undisturbed run had. */
export async function killAtEach(
  commits: readonly string[],
  moment: KillPoint['moment'],
  crash: (killPoint: KillPoint) => Promise<Played>,
): Promise<void> {
  const numbers = commits.map((_, index) => index + 1);
  await inParallel(numbers, async (number) => {
    try {
      const played = await crash({ number, moment });
      // On a busy machine checkpoints share commits that had one each in the run that was counted: then there are fewer.
      if (!played.wasKilled) expect(played.commits.length, 'commits of a process that lived on').toBeLessThan(number);
    } catch (error) {
      const what = `Killed ${moment} commit ${number} (${commits[number - 1]})`;
      throw new Error(`${what}: ${(error as Error).message}`, { cause: error });
    }
  });
}
