// One of three processes that serve a limited queue is killed: at a claim, in a run, at an outcome. The others take its
// jobs over, and with them its places in the queue.
import { expect, test } from 'vitest';
import type { QueueSettings } from '../../src/model/queues.js';
import { forEachDialect, type TestDialect } from '../rig/dialects.js';
import { expectKept } from './invariants.js';
import { linesOf } from './journal.js';
import type { KillPoint } from './kill-points.js';
import { until } from './processes.js';
import type { JobTimes } from './queue-checker.js';
import { enqueueJobs, expectJobsDone, expectLimitsKept, setQueueScene, untilAllDone } from './queue-scene.js';
import { type RandomSource, withSeed } from './random.js';
import { idsOf } from './setup.js';

const JOBS = 75;
/** Noticing a death takes up to 250 ms here, and a second more under load; then the queue must go on. */
const TAKE_OVER_MAX_MS = 2500;

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

/** How many jobs at most ran at once after this time. */
function peakAfter(jobs: readonly JobTimes[], at: number): number {
  const later = jobs.filter(({ startedAt }) => startedAt > at);
  return Math.max(
    ...later.map((job) => jobs.filter((o) => o.startedAt <= job.startedAt && o.endedAt > job.startedAt).length),
  );
}

async function killAndGoOn(dialect: TestDialect, kill: Kill, limits: QueueSettings, random: RandomSource) {
  const scene = await setQueueScene(dialect, 2);
  const { journal, operator, workers } = scene;
  const number = 1 + random.below(3);
  const killPoint = typeof kill === 'string' ? undefined : { number, ...kill };
  const [victim] = await scene.launch(1, { killPoint });
  workers.pop();
  const isVictims = ({ pid }: { readonly pid: number }): boolean => pid === victim?.pid;

  await operator.DBOS.registerQueue('q', limits);
  const jobs = idsOf('job', JOBS).map((workflowID, index) => ({
    workflowID,
    lengthMs: 10 + random.below(40),
    partitionKey: limits.partitionConcurrency === undefined ? undefined : `p${index % 5}`,
  }));
  await enqueueJobs(scene, 'q', jobs);
  if (!killPoint) {
    await until('it runs one', () => linesOf(journal.read(), 'step').some(isVictims));
    await victim?.kill();
  }
  const { signal } = (await victim?.exited) ?? {};
  const killedAt = Date.now();
  const [then, linesThen] = [await scene.tables(), journal.read()];
  expect(signal, victim?.log()).toBe('SIGKILL');
  const left = [...then.workflows.values()].filter(({ status }) => status !== 'SUCCESS').length;
  await untilAllDone(scene, JOBS);

  const done = await expectJobsDone(scene, 'q');
  const now = await scene.tables();
  const linesSince = journal.read().slice(linesThen.length);
  expectKept(then, now, linesSince);
  expectLimitsKept(scene, done, limits, { maxMs: TAKE_OVER_MAX_MS, killedAt });
  // Only what was not finished ran again, and what the dead one held was counted as an attempt.
  for (const { recoveryAttempts, workflowID } of now.workflows.values()) {
    expect(recoveryAttempts, workflowID).toBeLessThanOrEqual(2);
  }
  if (left >= JOBS / 2) expect(peakAfter(done, killedAt)).toBe(limits.globalConcurrency);
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

    await untilAllDone(scene, 3, 5000);
    await expectJobsDone(scene, 'q');
  });
});
