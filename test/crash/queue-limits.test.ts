// Limits of queues under four processes and jobs of random lengths, and how the processes share the work.
import { expect, test } from 'vitest';
import type { QueueSettings } from '../../src/features/queue/queue.js';
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
const LENGTH_MAX_MS = 30;
const JOBS_PER_ROUND = 200;
const ROUNDS_MAX = 20;

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

/** How many of the jobs each process ran, the one with the fewest first. */
function sharesOf(scene: QueueScene, jobs: readonly JobTimes[]): number[] {
  const shares = scene.workers.map(({ pid }) => jobs.filter(({ process }) => process === pid).length);
  return shares.sort((a, b) => a - b);
}

/**
 * Runs 200 jobs at a time until each process had `least` of them. A process that a busy machine leaves asleep gets its
 * share when it is awake. One that gets nothing because others are faster never does.
 */
async function runUntilAllHave(
  least: number,
  scene: QueueScene,
  limits: QueueSettings,
  lengthMs: number,
): Promise<number[]> {
  const { size: before } = (await scene.tables()).workflows;
  await scene.operator.DBOS.registerQueue('q', limits);
  let shares: number[] = [];
  for (let round = 1; round <= ROUNDS_MAX; round += 1) {
    const jobs = idsOf(`job-${before}-${round}`, JOBS_PER_ROUND).map((workflowID, index) => ({
      workflowID,
      lengthMs,
      partitionKey: isPartitioned(limits) ? `p${index % 40}` : undefined,
    }));
    await enqueueJobs(scene, 'q', jobs);
    await untilAllDone(scene, before + round * JOBS_PER_ROUND);
    shares = sharesOf(scene, await expectJobsDone(scene, 'q'));
    if ((shares[0] ?? 0) >= least) return shares;
  }
  return expect.fail(`A process had fewer than ${least} jobs: ${shares.join()}`);
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
    ['without a limit', {}, 20],
    ['with a global one', { globalConcurrency: 8 }, 20],
    ['with partitions', { partitionConcurrency: 1 }, 50],
  ] as const)('processes share a backlog: %s', async (_, limits, lengthMs) => {
    const scene = await setQueueScene(dialect, PROCESSES);

    const shares = await runUntilAllHave(20, scene, limits, lengthMs);

    console.info(`${dialect.name}, ${JSON.stringify(limits)}: ${shares.join()}`);
  });

  test('a process that joins late gets its share', async () => {
    const scene = await setQueueScene(dialect, 2);
    const limits = { globalConcurrency: 6 };
    await runUntilAllHave(20, scene, limits, 20);

    await scene.launch(1);
    const shares = await runUntilAllHave(20, scene, limits, 20);

    console.info(`${dialect.name}: ${shares.join()} with the one that joined`);
  });
});
