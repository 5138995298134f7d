// Limits of queues under four processes and jobs of random lengths, and how the processes share the work.
import { expect, test } from 'vitest';
import type { QueueSettings } from '../../src/model/queues.js';
import { forEachDialect } from '../rig/dialects.js';
import { type RandomSource, withSeed } from './random.js';
import type { JobTimes } from './queue-checker.js';
import {
  enqueueJobs,
  expectJobsDone,
  expectLimitsKept,
  type QueueScene,
  setQueueScene,
  untilAllDone,
} from './queue-scene.js';
import { idsOf } from './setup.js';
import type { Job } from './worker-process.js';

const PROCESSES = 4;
const JOBS = 60;
const LENGTH_MAX_MS = 40;

const LIMITS: Readonly<Record<string, QueueSettings>> = {
  global: { globalConcurrency: 3 },
  worker: { workerConcurrency: 1 },
  rate: { rateLimit: { limitPerPeriod: 10, periodSec: 0.2 } },
  all: { globalConcurrency: 5, workerConcurrency: 2, rateLimit: { limitPerPeriod: 15, periodSec: 0.25 } },
  partition: { partitionConcurrency: 2 },
  partitionWorker: { partitionWorkerConcurrency: 1, globalConcurrency: 8 },
  partitionRate: { partitionRateLimit: { limitPerPeriod: 3, periodSec: 0.2 } },
  partitionAll: {
    globalConcurrency: 4,
    workerConcurrency: 2,
    rateLimit: { limitPerPeriod: 20, periodSec: 0.25 },
    partitionConcurrency: 2,
    partitionWorkerConcurrency: 1,
    partitionRateLimit: { limitPerPeriod: 8, periodSec: 0.25 },
  },
};

function isPartitioned(limits: QueueSettings): boolean {
  return Object.keys(limits).some((name) => name.startsWith('partition'));
}

/** Jobs of random lengths. The first partition has as many as the other five together. */
function randomJobs(queueName: string, limits: QueueSettings, random: RandomSource): Job[] {
  return idsOf(queueName, JOBS).map((workflowID) => {
    const partition = Math.max(0, random.below(10) - 4);
    const partitionKey = isPartitioned(limits) ? `p${partition}` : undefined;
    return { workflowID, lengthMs: random.below(LENGTH_MAX_MS + 1), partitionKey };
  });
}

async function runJobs(scene: QueueScene, queueName: string, limits: QueueSettings, jobs: readonly Job[]) {
  await scene.operator.DBOS.registerQueue(queueName, limits);
  await enqueueJobs(scene, queueName, jobs);
}

/** On SQLite a process learns of others by their commits, a quarter of a second later at most. */
async function warmUp(scene: QueueScene): Promise<void> {
  const jobs = idsOf('warm-up', 12).map((workflowID) => ({ workflowID, lengthMs: 40 }));
  await runJobs(scene, 'warm-up', { globalConcurrency: 1 }, jobs);
  await untilAllDone(scene, jobs.length);
}

/** How many of the jobs each process ran, the one with the fewest first. */
function sharesOf(scene: QueueScene, jobs: readonly JobTimes[]): number[] {
  const shares = scene.workers.map(({ pid }) => jobs.filter(({ process }) => process === pid).length);
  return shares.sort((a, b) => a - b);
}

forEachDialect((dialect) => {
  test('limits are kept at every instant and used without long breaks, on eight queues at once', () =>
    withSeed(async (random) => {
      const scene = await setQueueScene(dialect, PROCESSES);

      for (const [name, limits] of Object.entries(LIMITS)) {
        await runJobs(scene, name, limits, randomJobs(name, limits, random));
      }
      await untilAllDone(scene, JOBS * Object.keys(LIMITS).length);

      for (const [name, limits] of Object.entries(LIMITS)) {
        expectLimitsKept(scene, await expectJobsDone(scene, name), limits);
      }
    }));

  test.each([
    ['without a limit', {}, 20, [0.05, 0.6]],
    ['with a global one', { globalConcurrency: 8 }, 50, [0.05, 0.6]],
    // A partition tends to stay with the process that has begun it, so who comes first has more of them.
    ['with partitions', { partitionConcurrency: 1 }, 150, [0, 0.9]],
  ] as const)('processes share a backlog: %s', async (_, limits, lengthMs, [least, most]) => {
    const scene = await setQueueScene(dialect, PROCESSES);
    await warmUp(scene);
    const jobs = idsOf('job', 200).map((workflowID, index) => ({
      workflowID,
      // Long enough that a process that wakes up late finds something left.
      lengthMs,
      partitionKey: isPartitioned(limits) ? `p${index % 40}` : undefined,
    }));

    await runJobs(scene, 'q', limits, jobs);
    await untilAllDone(scene, 12 + jobs.length);

    const shares = sharesOf(scene, await expectJobsDone(scene, 'q'));
    console.info(`${dialect.name}, ${JSON.stringify(limits)}: ${shares.join()} of ${jobs.length}`);
    // A quarter would be even. Who is slow to wake up on a busy machine gets less; nobody gets nearly all.
    expect(shares[0], `the smallest of ${shares.join()}`).toBeGreaterThanOrEqual(jobs.length * least);
    expect(shares[3], `the greatest of ${shares.join()}`).toBeLessThanOrEqual(jobs.length * most);
  });

  test('a process that joins late gets its share of what is left', async () => {
    const scene = await setQueueScene(dialect, 2);
    const jobs = idsOf('job', 300).map((workflowID) => ({ workflowID, lengthMs: 20 }));
    await runJobs(scene, 'q', { globalConcurrency: 6 }, jobs);

    const [late] = await scene.launch(1);
    const { length: before } = [...(await scene.tables()).workflows.values()].filter(({ startedAt }) => startedAt);
    await untilAllDone(scene, jobs.length);

    const done = await expectJobsDone(scene, 'q');
    const share = done.filter(({ process }) => process === late?.pid).length;
    console.info(`${dialect.name}: ${share} of the last ${jobs.length - before} for the one that joined.`);
    // A third would be even.
    expect(jobs.length - before).toBeGreaterThan(60);
    expect(share).toBeGreaterThan((jobs.length - before) / 6);
    expectLimitsKept(scene, done, { globalConcurrency: 6 });
  });
});
