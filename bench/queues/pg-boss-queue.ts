// pg-boss: by default it asks for one job every two seconds. Tuned, it asks for a thousand twice a second, its shortest
// interval, with five workers.
import pg from 'pg';
import { type Job, type JobQueue, QUEUE, type QueueSettings, work } from './job-queue.js';
import { importPeer } from './peers.js';

interface PgBossOptions {
  readonly connectionString: string;
  readonly max?: number;
}

interface PgBoss {
  on(event: 'error', listener: (error: unknown) => void): void;
  start(): Promise<unknown>;
  stop(options: { graceful: boolean; wait: boolean }): Promise<unknown>;
  createQueue(name: string): Promise<unknown>;
  send(name: string, data: Job): Promise<unknown>;
  insert(jobs: readonly { name: string; data: Job }[]): Promise<unknown>;
  work(
    name: string,
    options: { batchSize?: number; pollingIntervalSeconds?: number },
    handler: (jobs: readonly { readonly data: Job }[]) => Promise<unknown>,
  ): Promise<unknown>;
}

const TUNED = { batchSize: 1000, pollingIntervalSeconds: 0.5 };
const TUNED_WORKERS = 5;
/** As many as Everstep and DBOS have. */
const CONNECTIONS = 20;

export async function openPgBoss({ url, isServing, isTuned, hooks }: QueueSettings): Promise<JobQueue> {
  const { default: Boss } = await importPeer<{ default: new (options: PgBossOptions) => PgBoss }>('pg-boss');
  const boss = new Boss({ connectionString: url, ...(isTuned && { max: CONNECTIONS }) });
  boss.on('error', (error) => console.error(error));
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  const run = async ({ data }: { readonly data: Job }): Promise<void> => {
    hooks.onStart(data);
    await work(data.workMs);
    hooks.onEnd();
  };
  return {
    async launch() {
      await boss.start();
      await boss.createQueue(QUEUE);
      if (!isServing) return;
      for (let worker = 0; worker < (isTuned ? TUNED_WORKERS : 1); worker += 1) {
        await boss.work(QUEUE, isTuned ? TUNED : {}, (jobs) => Promise.all(jobs.map(run)));
      }
    },
    enqueue: (job) => boss.send(QUEUE, job),
    enqueueMany: (jobs) => boss.insert(jobs.map((data) => ({ name: QUEUE, data }))),
    async countDone() {
      const { rows } = await pool.query<{ n: string }>(
        `SELECT COUNT(*) AS n FROM pgboss.job WHERE name = $1 AND state = 'completed'`,
        [QUEUE],
      );
      return Number(rows[0]?.n);
    },
    async close() {
      await pool.end();
      await boss.stop({ graceful: false, wait: false });
    },
  };
}
