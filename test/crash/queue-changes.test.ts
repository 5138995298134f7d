// Queues that are changed while processes are busy with them, and processes of two versions on one queue.
import { expect, test } from 'vitest';
import { forEachDialect } from '../rig/dialects.js';
import { linesOf } from './journal.js';
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
import { idsOf } from './setup.js';

const PROCESSES = 4;
/** Unpushed, a change takes 11 seconds at least. */
const PUSHED_MAX_MS = 9000;

const runsOf = (scene: QueueScene, prefix: string) =>
  linesOf(scene.journal.read(), 'run').filter(({ workflowID }) => workflowID.startsWith(prefix));

async function untilRun(scene: QueueScene, count: number): Promise<void> {
  await until(`${count} jobs have run`, () => runsOf(scene, 'job').length >= count);
}

async function enqueue(scene: QueueScene, prefix: string, count: number, lengthMs = 15): Promise<void> {
  const jobs = idsOf(prefix, count).map((workflowID, index) => ({
    workflowID,
    lengthMs,
    partitionKey: `p${index % 5}`,
  }));
  await enqueueJobs(scene, 'q', jobs);
}

/** As many jobs as the limit lets in run at once. */
async function expectLimitUsed(scene: QueueScene, prefix: string, limit: number): Promise<void> {
  scene.closeGate();
  await enqueue(scene, prefix, 2 * limit, 0);
  await until(`${limit} run at once`, () => {
    const lines = scene.journal.read();
    return linesOf(lines, 'step').length - linesOf(lines, 'ended').length === limit;
  });
  scene.openGate();
}

/**
 * Resolves when each process has run a job of a queue that is registered now: then it knows all changes before it too.
 * Gives the number of jobs.
 */
async function untilAllKnow(scene: QueueScene, name: string): Promise<number> {
  await scene.operator.DBOS.registerQueue(name, { workerConcurrency: 1 });
  const haveAllRun = (): boolean => {
    const pids = new Set(runsOf(scene, name).map(({ pid }) => pid));
    return scene.workers.every(({ pid }) => pids.has(pid));
  };
  const jobsOf = (ids: readonly string[]) => ids.map((workflowID) => ({ workflowID, lengthMs: 30 }));
  return enqueueUntil(haveAllRun, scene, { queueName: name, count: 2 * PROCESSES, jobsOf });
}

forEachDialect((dialect) => {
  async function setChangeScene(): Promise<QueueScene> {
    const scene = await setQueueScene(dialect, 0);
    scene.openGate();
    await scene.launch(PROCESSES, { gate: scene.gate });
    return scene;
  }

  test('a limit that is changed while processes are busy holds for all of them', async () => {
    const scene = await setChangeScene();
    const queue = await scene.operator.DBOS.registerQueue('q', { globalConcurrency: 8 });
    await expectLimitUsed(scene, 'job', 8);

    await queue.setGlobalConcurrency(2);
    const meanwhile = await untilAllKnow(scene, 'meanwhile');
    await enqueue(scene, 'low', 30, 20);
    await untilAllDone(scene, 16 + meanwhile + 30);
    await queue.setGlobalConcurrency(12);
    await expectLimitUsed(scene, 'high', 12);
    await untilAllDone(scene, 16 + meanwhile + 30 + 24);

    const done = await expectJobsDone(scene, 'q');
    const low = done.filter(({ workflowID }) => workflowID.startsWith('low'));
    expect(low).toHaveLength(30);
    expect(excessesOf(low, { globalConcurrency: 2 })).toEqual([]);
    expect(excessesOf(done, { globalConcurrency: 12 })).toEqual([]);
    expect(linesOf(scene.journal.read(), 'run')).toHaveLength(16 + meanwhile + 30 + 24);
  });

  test('nothing starts in a queue while it is paused, and all goes on when it is resumed', async () => {
    const scene = await setChangeScene();
    const { DBOS } = scene.operator;
    const limits = { globalConcurrency: 5, workerConcurrency: 2 };
    await DBOS.registerQueue('q', limits);
    await enqueue(scene, 'job', 80);
    await untilRun(scene, 20);

    await DBOS.pauseQueue('q');
    const before = await untilAllKnow(scene, 'before');
    await enqueue(scene, 'paused', 20);
    const meanwhile = await untilAllKnow(scene, 'meanwhile');
    expect(runsOf(scene, 'paused')).toEqual([]);
    await DBOS.resumeQueue('q');
    await until('it goes on', () => runsOf(scene, 'paused').length > 0, { boundMs: PUSHED_MAX_MS });
    await untilAllDone(scene, 100 + before + meanwhile);

    const done = await expectJobsDone(scene, 'q');
    expect(excessesOf(done, limits)).toEqual([]);
    expect(linesOf(scene.journal.read(), 'run')).toHaveLength(100 + before + meanwhile);
  });

  test('a queue that is deleted and registered again keeps its workflows and gets its new limits', async () => {
    const scene = await setChangeScene();
    const { DBOS } = scene.operator;
    await DBOS.registerQueue('q', { globalConcurrency: 10 });
    await enqueue(scene, 'job', 100);
    await untilRun(scene, 20);

    await DBOS.deleteQueue('q');
    const before = await untilAllKnow(scene, 'before');
    await enqueue(scene, 'unserved', 25);
    const meanwhile = await untilAllKnow(scene, 'meanwhile');
    expect(runsOf(scene, 'unserved')).toEqual([]);
    const registeredAt = Date.now();
    const limits = { partitionConcurrency: 1, globalConcurrency: 3 };
    await DBOS.registerQueue('q', limits);
    await untilAllDone(scene, 125 + before + meanwhile);

    const done = await expectJobsDone(scene, 'q');
    const later = done.filter(({ workflowID }) => workflowID.startsWith('unserved'));
    expectLimitsKept(
      scene,
      later.map((job) => ({ ...job, waitsFrom: registeredAt })),
      limits,
    );
    expect(linesOf(scene.journal.read(), 'run')).toHaveLength(125 + before + meanwhile);
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
    await until('both run', () => linesOf(scene.journal.read(), 'run').length === 2);
    await enqueueJobs(scene, 'q', [jobOf('c', 'v1'), jobOf('d', 'v2'), jobOf('e', 'v1')]);

    scene.openGate();
    await untilAllDone(scene, 5, PUSHED_MAX_MS);

    const done = await expectJobsDone(scene, 'q');
    expect(done.filter(({ process }) => process === old?.pid)).toHaveLength(2);
    expectLimitsKept(scene, done, { globalConcurrency: 2 });
  });
});
