// What the tests of queues over several processes have in common: workers, somebody who enqueues and changes queues but
// runs nothing, and the checks at the end.
import { expect } from 'vitest';
import type { DBOSConfig } from '../../src/run/config/config.js';
import type { QueueSettings } from '../../src/features/queue/queue.js';
import type { Database } from '../../src/database/database.js';
import type { TestDialect } from '../rig/dialects.js';
import { countByStatus, expectAllDone } from './invariants.js';
import { startWorker, until, type Worker } from './processes.js';
import { excessesOf, idlenessOf, jobsByJournal, jobsByRows, type JobTimes } from './queue-checker.js';
import { idsOf, launchHere, type LocalEngine, type Scene, setScene } from './setup.js';
import type { Job, WorkerSettings } from './worker-process.js';

/**
 * On a quiet machine no room is idle for half a second. On a busy one processes get their turn late; a lost wake-up costs
 * 11 seconds at least.
 */
const IDLE_MAX_MS = 8000;

export interface QueueScene extends Scene {
  readonly operator: LocalEngine;
  readonly workers: Worker[];
  /** Adds workers, launched. */
  launch(count: number, settings?: Partial<WorkerSettings>): Promise<Worker[]>;
}

/** Processes that run jobs, and an engine in the test's own process that serves none of the queues. */
export async function setQueueScene(
  dialect: TestDialect,
  count: number,
  { config = {}, ...settings }: Partial<WorkerSettings> & { readonly config?: Partial<DBOSConfig> } = {},
): Promise<QueueScene> {
  const scene = await setScene(dialect);
  const { url, journalPath } = scene;
  const operator = await launchHere(scene, { listenQueues: ['none'], ...config });
  const workers: Worker[] = [];
  const launch: QueueScene['launch'] = async (number, own = {}) => {
    const launched = await Promise.all(
      Array.from({ length: number }, () => startWorker({ url, journalPath, ...settings, ...own })),
    );
    await Promise.all(launched.map((worker) => worker.perform({ do: 'launch' })));
    workers.push(...launched);
    return launched;
  };
  await launch(count);
  return { ...scene, operator, workers, launch };
}

/** Puts jobs into a queue in one commit. */
export async function enqueueJobs({ operator }: QueueScene, queueName: string, jobs: readonly Job[]): Promise<void> {
  const { DBOS, workflows } = operator;
  const starts = jobs.map(({ workflowID, lengthMs, partitionKey, ...options }) => ({
    workflowID,
    args: [lengthMs] as [number],
    enqueueOptions: { ...options, queuePartitionKey: partitionKey },
  }));
  await DBOS.startWorkflows(workflows.job, starts, { queueName });
}

/**
 * Enqueues jobs, and more when all are done, until it is time; gives their number. Others may be so fast that the process
 * that is waited for gets none of the first.
 */
export async function enqueueUntil(
  isTime: () => boolean,
  scene: QueueScene,
  round: {
    readonly queueName: string;
    readonly count: number;
    readonly jobsOf: (ids: readonly string[]) => readonly Job[];
  },
): Promise<number> {
  const { queueName, jobsOf } = round;
  const before = await scene.withDatabase(countDone);
  let count = 0;
  while (!isTime()) {
    await enqueueJobs(scene, queueName, jobsOf(idsOf(`${queueName}-${count}`, round.count)));
    count += round.count;
    await scene.withDatabase((database) =>
      until('it is time or all are done', async () => isTime() || (await countDone(database)) >= before + count),
    );
  }
  return count;
}

export async function untilAllDone(scene: Scene, count: number, boundMs?: number): Promise<void> {
  await scene.withDatabase((database) =>
    until(`all ${count} jobs are done`, async () => (await countDone(database)) === count, { boundMs }),
  );
}

export async function countDone(database: Database): Promise<number> {
  return (await countByStatus(database)).get('SUCCESS') ?? 0;
}

/** Checks the end of all workflows, and gives the jobs of a queue. */
export async function expectJobsDone(scene: Scene, queueName: string): Promise<JobTimes[]> {
  const [tables, lines] = [await scene.tables(), scene.journal.read()];
  expectAllDone(tables, lines);
  return jobsByRows(tables, lines, queueName);
}

/** The limits were kept at every instant and used without long breaks. */
export function expectLimitsKept(
  scene: QueueScene,
  jobs: readonly JobTimes[],
  limits: QueueSettings,
  {
    processes = scene.workers,
    maxMs = IDLE_MAX_MS,
  }: {
    readonly processes?: readonly { readonly pid: number }[];
    readonly maxMs?: number;
  } = {},
): void {
  const executions = jobsByJournal(jobs, scene.journal.read());
  const what = `jobs under ${JSON.stringify(limits)}`;
  expect(excessesOf(jobs, limits), `${what}, by their rows`).toEqual([]);
  expect(
    excessesOf(executions, { ...limits, rateLimit: undefined, partitionRateLimit: undefined }),
    `${what}, by the journal`,
  ).toEqual([]);
  const pids = processes.map(({ pid }) => pid);
  expect(idlenessOf(jobs, limits, { processes: pids, maxMs }), what).toEqual([]);
}
