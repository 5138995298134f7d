// graphile-worker: by default one job at a time, woken by NOTIFY, and a look every two seconds. Tuned as its guide on
// performance says for many short jobs: 24 at a time from a local queue of 500, completed in batches.
import pg from 'pg';
import { type Job, type JobQueue, QUEUE, type QueueSettings, work } from './job-queue.js';
import { importPeer } from './peers.js';

interface Graphile {
  readonly Logger: new (factory: () => () => void) => unknown;
  run(options: Record<string, unknown>): Promise<{ stop(): Promise<void> }>;
  makeWorkerUtils(options: Record<string, unknown>): Promise<WorkerUtils>;
}

interface WorkerUtils {
  migrate(): Promise<void>;
  addJob(identifier: string, payload: Job): Promise<unknown>;
  addJobs(jobs: readonly { identifier: string; payload: Job }[]): Promise<unknown>;
  release(): Promise<void>;
}

/** Connections to enqueue with; Everstep and DBOS have as many. */
const ENQUEUERS = 20;
const TUNED = {
  concurrentJobs: 24,
  maxPoolSize: 26,
  localQueue: { size: 500 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
};

export async function openGraphile({ url, isServing, isTuned, hooks }: QueueSettings): Promise<JobQueue> {
  const graphile = await importPeer<Graphile>('graphile-worker');
  const shared = { connectionString: url, logger: new graphile.Logger(() => () => {}) };
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  const run = async (payload: Job): Promise<void> => {
    hooks.onStart(payload);
    await work(payload.workMs);
    hooks.onEnd();
  };
  const utils = await graphile.makeWorkerUtils({ ...shared, ...(isTuned && { maxPoolSize: ENQUEUERS }) });
  let runner: { stop(): Promise<void> } | undefined;
  return {
    async launch() {
      await utils.migrate();
      if (!isServing) return;
      runner = await graphile.run({
        preset: { worker: { ...shared, ...(isTuned && TUNED) } },
        noHandleSignals: true,
        taskList: { [QUEUE]: run },
        parsedCronItems: [],
      });
    },
    enqueue: (job) => utils.addJob(QUEUE, job),
    enqueueMany: (jobs) => utils.addJobs(jobs.map((payload) => ({ identifier: QUEUE, payload }))),
    async countDone(jobs) {
      // A job that is done is deleted.
      const { rows } = await pool.query<{ n: string }>('SELECT COUNT(*) AS n FROM graphile_worker.jobs');
      return jobs - Number(rows[0]?.n);
    },
    async close() {
      await pool.end();
      await runner?.stop();
      await utils.release();
    },
  };
}
