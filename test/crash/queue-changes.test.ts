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
/** How long after a change it must have reached everybody. Pushed, it takes some 30 ms; unpushed, 15 s. */
const PUSHED_MS = 700;

async function untilRun(scene: QueueScene, count: number): Promise<void> {
  await until(`${count} jobs have run`, () => linesOf(scene.journal.read(), 'run').length >= count);
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

function startedBetween(jobs: readonly JobTimes[], from: number, to: number): JobTimes[] {
  return jobs.filter(({ startedAt }) => startedAt > from && startedAt < to);
}

forEachDialect((dialect) => {
  test('a limit that is changed while processes are busy holds for all of them at once', async () => {
    const scene = await setQueueScene(dialect, PROCESSES);
    const queue = await scene.operator.DBOS.registerQueue('q', { globalConcurrency: 8 });
    const jobs = idsOf('job', 180).map((workflowID) => ({ workflowID, lengthMs: 20 }));
    await enqueueJobs(scene, 'q', jobs);
    await untilRun(scene, 30);

    await queue.setGlobalConcurrency(2);
    const loweredAt = Date.now();
    // Slow enough to be seen: 20 ms each, two at a time.
    await passTime(scene, 'meanwhile', 18);
    const { length: ranBefore } = linesOf(scene.journal.read(), 'run');
    // Before the call: others may hear of the change before it returns here.
    const raisedAt = Date.now();
    await queue.setGlobalConcurrency(12);
    await untilAllDone(scene, jobs.length + 18);

    const done = await expectJobsDone(scene, 'q');
    const low = startedBetween(done, loweredAt + PUSHED_MS, raisedAt);
    expect(excessesOf(low, { globalConcurrency: 2 })).toEqual([]);
    expect(excessesOf(done, { globalConcurrency: 12 })).toEqual([]);
    // Unless the machine was so busy that the work was over by then.
    if (ranBefore < 150) {
      const high = startedBetween(done, raisedAt, Infinity);
      expect(excessesOf(high, { globalConcurrency: 2 }), 'more than two at once').not.toEqual([]);
    }
    expect(linesOf(scene.journal.read(), 'run')).toHaveLength(jobs.length + 18);
  });

  test('nothing starts in a queue while it is paused, and all goes on when it is resumed', async () => {
    const scene = await setQueueScene(dialect, PROCESSES);
    const { DBOS } = scene.operator;
    const limits = { globalConcurrency: 5, workerConcurrency: 2 };
    await DBOS.registerQueue('q', limits);
    const jobs = idsOf('job', 80).map((workflowID) => ({ workflowID, lengthMs: 15 }));
    await enqueueJobs(scene, 'q', jobs);
    await untilRun(scene, 20);

    await DBOS.pauseQueue('q');
    const pausedAt = Date.now();
    await passTime(scene, 'meanwhile', 8);
    const resumedAt = Date.now();
    await DBOS.resumeQueue('q');
    await untilAllDone(scene, jobs.length + 8);

    const done = await expectJobsDone(scene, 'q');
    // A claim that was under way may end a moment later.
    expect(startedBetween(done, pausedAt + 250, resumedAt)).toEqual([]);
    expect(startedBetween(done, resumedAt, resumedAt + 10 * PUSHED_MS).length).toBeGreaterThan(0);
    expect(excessesOf(done, limits)).toEqual([]);
    expect(linesOf(scene.journal.read(), 'run')).toHaveLength(jobs.length + 8);
  });

  test('a queue that is deleted and registered again keeps its workflows and gets its new limits', async () => {
    const scene = await setQueueScene(dialect, PROCESSES);
    const { DBOS } = scene.operator;
    await DBOS.registerQueue('q', { globalConcurrency: 10 });
    const jobs = idsOf('job', 100).map((workflowID, index) => ({
      workflowID,
      lengthMs: 15,
      partitionKey: `p${index % 5}`,
    }));
    await enqueueJobs(scene, 'q', jobs);
    await untilRun(scene, 20);

    await DBOS.deleteQueue('q');
    const deletedAt = Date.now();
    await passTime(scene, 'meanwhile', 18);
    const registeredAt = Date.now();
    const limits = { partitionConcurrency: 1, globalConcurrency: 3 };
    await DBOS.registerQueue('q', limits);
    await untilAllDone(scene, jobs.length + 18);

    const done = await expectJobsDone(scene, 'q');
    expect(startedBetween(done, deletedAt + PUSHED_MS, registeredAt)).toEqual([]);
    const later = startedBetween(done, registeredAt, Infinity);
    expect(later.length).toBeGreaterThan(0);
    // Nobody served the old one any more.
    expectLimitsKept(
      scene,
      later.map((job) => ({ ...job, waitsFrom: registeredAt })),
      limits,
    );
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
    const scene = await setQueueScene(dialect, 1, {});
    const { gate } = scene;
    await scene.launch(1, { applicationVersion: 'v2' });
    const [old] = await scene.launch(1, { gate, applicationVersion: 'v0' });
    await scene.operator.DBOS.registerQueue('q', { globalConcurrency: 2, onConflict: 'always_update' });
    const jobOf = (workflowID: string, applicationVersion: string) => ({ workflowID, lengthMs: 0, applicationVersion });
    await enqueueJobs(scene, 'q', [jobOf('a', 'v0'), jobOf('b', 'v0')]);
    await untilRun(scene, 2);
    await enqueueJobs(scene, 'q', [jobOf('c', 'v1'), jobOf('d', 'v2'), jobOf('e', 'v1')]);

    scene.openGate();
    await untilAllDone(scene, 5, 3000);

    const done = await expectJobsDone(scene, 'q');
    expect(done.filter(({ process }) => process === old?.pid)).toHaveLength(2);
    expectLimitsKept(scene, done, { globalConcurrency: 2 });
  });
});
