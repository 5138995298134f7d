// Queues that are changed while processes are busy with them, and processes of two versions on one queue.
import { expect, test } from 'vitest';
import { forEachDialect } from '../rig/dialects.js';
import { linesOf } from './journal.js';
import { until } from './processes.js';
import { excessesOf, type JobTimes } from './queue-checker.js';
import {
  enqueueJobs,
  expectJobsDone,
  expectLimitsKept,
  type QueueScene,
  setQueueScene,
  untilAllDone,
} from './queue-scene.js';
import { idsOf } from './setup.js';

const PROCESSES = 4;

async function untilRun(scene: QueueScene, count: number): Promise<void> {
  await until(`${count} jobs have run`, () => linesOf(scene.journal.read(), 'run').length >= count);
}

/** A change reaches processes that never poll by its notification alone. */
async function untilKnown(scene: QueueScene, globalConcurrency: number | null): Promise<void> {
  const command = { do: 'know', queueName: 'q', globalConcurrency } as const;
  await Promise.all(scene.workers.map((worker) => worker.perform(command)));
}

/** Passes the time with a number of jobs in a queue of their own, one after the other. */
async function passTime(scene: QueueScene, name: string, count: number): Promise<void> {
  await scene.operator.DBOS.registerQueue(name, { globalConcurrency: 1 });
  await enqueueJobs(
    scene,
    name,
    idsOf(name, count).map((workflowID) => ({ workflowID, lengthMs: 50 })),
  );
  const isDone = ({ workflowID }: { readonly workflowID: string }): boolean => workflowID.startsWith(name);
  await until(`${name} is done`, () => linesOf(scene.journal.read(), 'ended').filter(isDone).length === count);
}

const startingWith = (jobs: readonly JobTimes[], prefix: string): JobTimes[] =>
  jobs.filter(({ workflowID }) => workflowID.startsWith(prefix));

forEachDialect((dialect) => {
  test('a limit that is changed while processes are busy holds for all of them', async () => {
    const scene = await setQueueScene(dialect, 0);
    const { gate } = scene;
    scene.openGate();
    await scene.launch(PROCESSES, { gate, neverPolls: true });
    const queue = await scene.operator.DBOS.registerQueue('q', { globalConcurrency: 8 });
    const jobsOf = (prefix: string, count: number) =>
      idsOf(prefix, count).map((workflowID) => ({ workflowID, lengthMs: 20 }));
    await enqueueJobs(scene, 'q', jobsOf('first', 100));
    await untilRun(scene, 30);

    await queue.setGlobalConcurrency(2);
    await untilKnown(scene, 2);
    // With the queue empty, no claim under the old limit is left.
    await untilAllDone(scene, 100);
    await enqueueJobs(scene, 'q', jobsOf('low', 30));
    await untilRun(scene, 110);
    await queue.setGlobalConcurrency(12);
    await untilKnown(scene, 12);
    await untilAllDone(scene, 130);
    scene.closeGate();
    await enqueueJobs(scene, 'q', jobsOf('high', 20));
    await untilRun(scene, 130 + 12);
    scene.openGate();
    await untilAllDone(scene, 150);

    const done = await expectJobsDone(scene, 'q');
    // The first of them ran before the limit was raised.
    const low = startingWith(done, 'low').sort((a, b) => a.startedAt - b.startedAt);
    expect(excessesOf(low.slice(0, 10), { globalConcurrency: 2 })).toEqual([]);
    expect(excessesOf(done, { globalConcurrency: 12 })).toEqual([]);
    expect(excessesOf(startingWith(done, 'first'), { globalConcurrency: 8 })).toEqual([]);
    expect(linesOf(scene.journal.read(), 'run')).toHaveLength(150);
  });

  test('nothing starts in a queue while it is paused, and all goes on when it is resumed', async () => {
    const scene = await setQueueScene(dialect, PROCESSES, { neverPolls: true });
    const { DBOS } = scene.operator;
    const limits = { globalConcurrency: 5, workerConcurrency: 2 };
    await DBOS.registerQueue('q', limits);
    const jobsOf = (prefix: string, count: number) =>
      idsOf(prefix, count).map((workflowID) => ({ workflowID, lengthMs: 15 }));
    await enqueueJobs(scene, 'q', jobsOf('before', 60));
    await untilRun(scene, 20);

    // Claims in flight have ended when it returns.
    await DBOS.pauseQueue('q');
    const { workflows } = await scene.tables();
    const waiting = [...workflows.values()].filter(({ status }) => status === 'ENQUEUED');
    await enqueueJobs(scene, 'q', jobsOf('meanwhile', 20));
    await passTime(scene, 'time', 8);
    const { workflows: later } = await scene.tables();
    await DBOS.resumeQueue('q');
    await untilAllDone(scene, 60 + 20 + 8);

    for (const workflowID of [...waiting.map((one) => one.workflowID), ...idsOf('meanwhile', 20)]) {
      expect(later.get(workflowID), workflowID).toMatchObject({ status: 'ENQUEUED' });
    }
    expect(excessesOf(await expectJobsDone(scene, 'q'), limits)).toEqual([]);
    expect(linesOf(scene.journal.read(), 'run')).toHaveLength(60 + 20 + 8);
  });

  test('a queue that is deleted and registered again keeps its workflows and gets its new limits', async () => {
    const scene = await setQueueScene(dialect, 0);
    const { gate } = scene;
    await scene.launch(PROCESSES, { gate, neverPolls: true });
    const { DBOS } = scene.operator;
    await DBOS.registerQueue('q', { globalConcurrency: 10 });
    const jobs = idsOf('job', 100).map((workflowID, index) => ({
      workflowID,
      lengthMs: 15,
      partitionKey: `p${index % 5}`,
    }));
    await enqueueJobs(scene, 'q', jobs);
    await untilRun(scene, 10);

    await DBOS.deleteQueue('q');
    await untilKnown(scene, null);
    scene.openGate();
    await untilAllDone(scene, 10);
    await passTime(scene, 'meanwhile', 18);
    const { length: ranMeanwhile } = linesOf(scene.journal.read(), 'run');
    const registeredAt = Date.now();
    const limits = { partitionConcurrency: 1, globalConcurrency: 3 };
    await DBOS.registerQueue('q', limits);
    await untilAllDone(scene, jobs.length + 18);

    expect(ranMeanwhile).toBe(10 + 18);
    const later = (await expectJobsDone(scene, 'q'))
      .filter(({ startedAt }) => startedAt >= registeredAt)
      .map((job) => ({ ...job, waitsFrom: registeredAt }));
    expect(later).toHaveLength(90);
    expectLimitsKept(scene, later, limits);
    expect(linesOf(scene.journal.read(), 'run')).toHaveLength(jobs.length + 18);
  });

  test.each([
    ['a queue', { globalConcurrency: 2 }],
    ['a partition', { globalConcurrency: 4, partitionConcurrency: 2 }],
  ])('processes of two versions share the places in %s without a pause', async (_, limits) => {
    const scene = await setQueueScene(dialect, 2);
    await scene.launch(2, { applicationVersion: 'v2' });
    await scene.operator.DBOS.registerQueue('q', { ...limits, onConflict: 'always_update' });
    const jobs = idsOf('job', 60).map((workflowID, index) => ({
      workflowID,
      lengthMs: 20,
      applicationVersion: index % 3 === 0 ? 'v2' : 'v1',
      partitionKey: 'partitionConcurrency' in limits ? 'only' : undefined,
    }));

    await enqueueJobs(scene, 'q', jobs);
    await untilAllDone(scene, jobs.length);

    const done = await expectJobsDone(scene, 'q');
    const pidsOfV2 = scene.workers.slice(2).map(({ pid }) => pid);
    for (const { workflowID, process } of done) {
      const isV2 = jobs.find((job) => job.workflowID === workflowID)?.applicationVersion === 'v2';
      expect(pidsOfV2.includes(process), `"${workflowID}" ran in a process of v2`).toBe(isV2);
    }
    expectLimitsKept(scene, done, limits);
  });

  test('a place that a process of one version frees is used by the other version at once', async () => {
    const scene = await setQueueScene(dialect, 1, { neverPolls: true });
    const { gate } = scene;
    await scene.launch(1, { applicationVersion: 'v2' });
    const [old] = await scene.launch(1, { gate, applicationVersion: 'v0' });
    await scene.operator.DBOS.registerQueue('q', { globalConcurrency: 2, onConflict: 'always_update' });
    const jobOf = (workflowID: string, applicationVersion: string) => ({ workflowID, lengthMs: 0, applicationVersion });
    await enqueueJobs(scene, 'q', [jobOf('a', 'v0'), jobOf('b', 'v0')]);
    await untilRun(scene, 2);
    await enqueueJobs(scene, 'q', [jobOf('c', 'v1'), jobOf('d', 'v2'), jobOf('e', 'v1')]);

    scene.openGate();
    await untilAllDone(scene, 5);

    const done = await expectJobsDone(scene, 'q');
    expect(done.filter(({ process }) => process === old?.pid)).toHaveLength(2);
    expectLimitsKept(scene, done, { globalConcurrency: 2 });
  });
});
