// A queue with a limit: how much of what the limit allows is used.
import type { Databases } from '../engine/databases.js';
import { type Measurement, printTable } from '../report.js';
import type { QueueEngine, ServeAnswer } from './commands.js';
import { milliseconds, NAMES, rate } from './figures.js';
import { attempt, withProcesses } from './processes.js';

const CONCURRENCY = 10;
const WORK_MS = 5;
const JOBS = 10_000;
const PEER_JOBS = 60;
const IDEAL = (CONCURRENCY / WORK_MS) * 1000;

export async function printLimit(databases: Databases): Promise<void> {
  const measure = async (engine: QueueEngine, label: string, url: string, processes: number): Promise<Measurement> => {
    const jobs = engine === 'everstep' ? JOBS : PEER_JOBS;
    const found = await attempt(`concurrency ${CONCURRENCY}: ${label}, ${processes} processes`, () =>
      run(engine, url, { jobs, processes }),
    );
    return {
      label: `${label}, ${processes === 1 ? 'one process' : `${processes} processes`}`,
      value: rate(found?.perSecond),
      ratio: found && `${((found.perSecond / IDEAL) * 100).toFixed(1)} % of the ideal rate; ${found.shares} jobs each`,
    };
  };
  printTable(
    `a queue with concurrency ${CONCURRENCY} and jobs of ${WORK_MS} ms: ideal is ${rate(IDEAL)}; first start to last end`,
    [
      await measure('everstep', 'Everstep on Postgres', await databases.postgres(), 1),
      await measure('everstep', 'Everstep on Postgres', await databases.postgres(), 4),
      await measure('everstep', 'Everstep on SQLite', databases.sqlite(), 1),
      await measure('everstep', 'Everstep on SQLite', databases.sqlite(), 4),
      await measure('dbos-5', NAMES['dbos-5'], await databases.postgres(), 1),
      {
        label: 'a setTimeout of 5 ms in a loop',
        value: milliseconds(await timerMs()),
        ratio: 'what a job takes at least',
      },
    ],
  );
}

/** The workers stand ready when the jobs come. */
async function run(
  engine: QueueEngine,
  url: string,
  { jobs, processes }: { readonly jobs: number; readonly processes: number },
): Promise<{ readonly perSecond: number; readonly shares: string }> {
  return withProcesses(async (start) => {
    const limit = { url, concurrency: CONCURRENCY } as const;
    const workers = [];
    for (let index = 0; index < processes; index += 1) {
      const worker = start(engine, { task: 'serve', ...limit, jobs, processes });
      await worker.next();
      workers.push(worker);
    }
    await start(engine, { task: 'fill', ...limit, jobs, workMs: WORK_MS }).next();
    const answers = await Promise.all(workers.map((worker) => worker.next<ServeAnswer>()));
    const from = Math.min(...answers.map(({ firstStartedAt }) => firstStartedAt ?? Infinity));
    const to = Math.max(...answers.map(({ lastEndedAt }) => lastEndedAt ?? 0));
    return { perSecond: (jobs / (to - from)) * 1000, shares: answers.map(({ count }) => count).join(' + ') };
  });
}

async function timerMs(): Promise<number> {
  const rounds = 40;
  const startedAt = performance.now();
  for (let round = 0; round < rounds; round += 1) await new Promise((resolve) => setTimeout(resolve, WORK_MS));
  return (performance.now() - startedAt) / rounds;
}
