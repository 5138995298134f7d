// One of three processes that serve a limited queue is killed: at a claim, in a run, at an outcome. The others take its
// jobs over, and with them its places in the queue.
import { expect, test } from 'vitest';
import type { QueueSettings } from '../../src/features/queue/queue.js';
import { forEachDialect, type TestDialect } from '../rig/dialects.js';
import { expectKept } from './invariants.js';
import { linesOf } from './journal.js';
import type { KillPoint } from './kill-points.js';
import { until } from './processes.js';
import { excessesOf } from './queue-checker.js';
import {
  enqueueJobs,
  enqueueUntil,
  expectJobsDone,
  expectLimitsKept,
  type QueueScene,
  setQueueScene,
  untilAllDone,
} from './queue-scene.js';
import { type RandomSource, withSeed } from './random.js';
import { idsOf } from './setup.js';
import type { Job } from './worker-process.js';

const JOBS = 75;

type Kill = Pick<KillPoint, 'label' | 'moment'> | 'in the run';

const LIMITS: readonly QueueSettings[] = [{ globalConcurrency: 6 }, { partitionConcurrency: 2, globalConcurrency: 7 }];

function killsOn(dialect: TestDialect): Kill[] {
  const moments = dialect.name === 'postgres' ? (['before', 'sent', 'after'] as const) : (['before', 'after'] as const);
  const points = ['claim', 'outcome'].flatMap((label) => moments.map((moment) => ({ label, moment })));
  // Before a claim nothing has happened yet.
  return [...points.filter(({ label, moment }) => label === 'outcome' || moment !== 'before'), 'in the run'];
}

function describeKill(kill: Kill): string {
  return typeof kill === 'string' ? kill : `${kill.moment} ${kill.label}`;
}

/** More jobs than the limit lets in: as many as it does run at once, so no slot is lost. */
async function expectFullLimit(scene: QueueScene, limits: QueueSettings, done: number): Promise<void> {
  const { globalConcurrency: limit = 0 } = limits;
  const { length: before } = linesOf(scene.journal.read(), 'step');
  scene.closeGate();
  await enqueueJobs(scene, 'q', jobsUnder(limits, idsOf('held', 2 * limit)));
  await until('the limit is used up', () => linesOf(scene.journal.read(), 'step').length === before + limit);
  scene.openGate();
  await untilAllDone(scene, done + 2 * limit);
  expect(excessesOf(await expectJobsDone(scene, 'q'), limits)).toEqual([]);
}

function jobsUnder({ partitionConcurrency }: QueueSettings, ids: readonly string[], lengthMs = () => 0): Job[] {
  return ids.map((workflowID, index) => ({
    workflowID,
    lengthMs: lengthMs(),
    partitionKey: partitionConcurrency === undefined ? undefined : `p${index % 5}`,
  }));
}

async function killAndGoOn(dialect: TestDialect, kill: Kill, limits: QueueSettings, random: RandomSource) {
  const scene = await setQueueScene(dialect, 0);
  const { gate, journal, operator, workers } = scene;
  scene.openGate();
  await scene.launch(2, { gate });
  const number = 1 + random.below(3);
  const killPoint = typeof kill === 'string' ? undefined : { number, ...kill };
  const [victim] = await scene.launch(1, { gate, killPoint });
  workers.pop();
  const isVictims = ({ pid }: { readonly pid: number }): boolean => pid === victim?.pid;

  await operator.DBOS.registerQueue('q', limits);
  const lengthMs = (): number => random.below(30);
  let hasExited = false;
  void victim?.exited.then(() => (hasExited = true));
  const isTime = (): boolean => (killPoint ? hasExited : linesOf(journal.read(), 'step').some(isVictims));
  const jobsOf = (ids: readonly string[]): Job[] => jobsUnder(limits, ids, lengthMs);
  const count = await enqueueUntil(isTime, scene, { queueName: 'q', count: JOBS, jobsOf });
  if (!killPoint) await victim?.kill();
  const { signal } = (await victim?.exited) ?? {};
  const [then, linesThen] = [await scene.tables(), journal.read()];
  expect(signal, victim?.log()).toBe('SIGKILL');
  await untilAllDone(scene, count);

  const done = await expectJobsDone(scene, 'q');
  const now = await scene.tables();
  const linesSince = journal.read().slice(linesThen.length);
  expectKept(then, now, linesSince);
  expectLimitsKept(scene, done, limits);
  // Only what was not finished ran again, and what the dead one held was counted as an attempt.
  for (const { recoveryAttempts, workflowID } of now.workflows.values()) {
    expect(recoveryAttempts, workflowID).toBeLessThanOrEqual(2);
  }
  await expectFullLimit(scene, limits, count);
}

forEachDialect((dialect) => {
  test.each(killsOn(dialect).map((kill, index) => [describeKill(kill), kill, LIMITS[index % 2] ?? {}] as const))(
    'a limited queue goes on with its full limit when a process is killed: %s',
    (_, kill, limits) => withSeed((random) => killAndGoOn(dialect, kill, limits, random)),
  );

  test('a place is used at once although the process that has freed it died before it could tell', async () => {
    const scene = await setQueueScene(dialect, 0);
    const { DBOS } = scene.operator;
    await DBOS.registerQueue('q', { globalConcurrency: 1 });
    await DBOS.registerQueue('served after q');
    const killPoint = { label: 'outcome', number: 1, moment: 'after' } as const;
    const [victim] = await scene.launch(1, { killPoint, gate: scene.gate, listenQueues: ['q'] });
    await enqueueJobs(scene, 'q', [
      { workflowID: 'first', lengthMs: 0 },
      { workflowID: 'second', lengthMs: 0 },
    ]);
    await until('it runs', () => linesOf(scene.journal.read(), 'step').length === 1);
    // This one finds the queue full. The death is noticed by another one, which does not serve the queue.
    await scene.launch(1);
    await enqueueJobs(scene, 'served after q', [{ workflowID: 'third', lengthMs: 0 }]);
    await untilAllDone(scene, 1);

    scene.openGate();
    await victim?.exited;

    await untilAllDone(scene, 3, 9000);
    await expectJobsDone(scene, 'q');
  });
});
