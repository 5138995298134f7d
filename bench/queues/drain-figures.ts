// How fast one process works off a backlog, and how fast rows get into a queue in bulk.
import type { Databases } from '../engine/databases.js';
import { type Measurement, median, printTable } from '../report.js';
import type { BulkAnswer, QueueEngine, ServeAnswer, StreamAnswer } from './commands.js';
import { ENGINES, NAMES, rate, type Rates, ratios } from './figures.js';
import { askQueue, attempt, withProcesses } from './processes.js';

const JOBS = 5000;
/** Enough for a second at the fastest, much of it on cold code. */
const BACKLOG = 20_000;
/** Enough for several seconds. DBOS would take minutes. */
const LARGE_BACKLOG = 100_000;
const WARM_UP_JOBS = 500;
const IN_FLIGHT = 100;
const BULK_ROWS = 10_000;
const BULK_ROUNDS = 3;

const NOTES: Partial<Record<QueueEngine, string>> = {
  'graphile-worker': 'no checkpoints; 24 at once, local queue of 500, completed in batches',
  'pg-boss': 'no checkpoints; 5 workers with batches of 1,000, poll every 0.5 s',
};

/** What a library did on Postgres, and Everstep on SQLite. */
interface Found {
  readonly onPostgres: Rates;
  readonly onSqlite: number | undefined;
}

type Measure = (engine: QueueEngine, url: string) => Promise<number>;

export async function printDrain(databases: Databases): Promise<void> {
  const streamed = await measureAll(databases, 'one by one', stream);
  const filled = await measureAll(databases, 'beforehand', (engine, url) => drainFilled(engine, url, BACKLOG));
  const large = await measureAll(
    databases,
    'beforehand, many',
    (engine, url) => drainFilled(engine, url, LARGE_BACKLOG),
    ENGINES.filter((engine) => engine !== 'dbos-5'),
  );
  printTable('drain of one-step workflows by one process, until all are recorded as done', [
    ...linesOf(`${JOBS.toLocaleString('en')} one by one, 100 calls in flight`, streamed),
    ...linesOf(`${BACKLOG.toLocaleString('en')} beforehand, worker launched after`, filled),
    ...linesOf(`${LARGE_BACKLOG.toLocaleString('en')} beforehand`, large),
  ]);
}

export async function printBulk(databases: Databases): Promise<void> {
  const found = await measureAll(databases, 'in bulk', async (engine, url) => {
    const command = { task: 'bulk', url, rows: BULK_ROWS, rounds: BULK_ROUNDS } as const;
    const { elapsedMs } = await askQueue<BulkAnswer>(engine, command);
    return (BULK_ROWS / median(elapsedMs)) * 1000;
  });
  const calls: Record<QueueEngine, string> = {
    everstep: 'startWorkflows',
    'dbos-5': 'enqueueWorkflows for event receivers',
    'graphile-worker': 'addJobs',
    'pg-boss': 'insert',
  };
  printTable(
    `bulk enqueue: rows a second, ${BULK_ROWS.toLocaleString('en')} rows in one call, median of ${BULK_ROUNDS}`,
    linesOf('bulk', found, calls),
  );
}

async function measureAll(
  databases: Databases,
  what: string,
  measure: Measure,
  engines: readonly QueueEngine[] = ENGINES,
): Promise<Found> {
  const onPostgres: Rates = {};
  for (const engine of engines) {
    onPostgres[engine] = await attempt(`enqueued ${what}: ${NAMES[engine]}`, async () =>
      measure(engine, await databases.postgres()),
    );
  }
  const onSqlite = await attempt(`enqueued ${what}: Everstep on SQLite`, () => measure('everstep', databases.sqlite()));
  return { onPostgres, onSqlite };
}

async function stream(engine: QueueEngine, url: string): Promise<number> {
  const { drainMs } = await askQueue<StreamAnswer>(engine, {
    task: 'stream',
    url,
    isTuned: true,
    jobs: JOBS,
    warmUpJobs: WARM_UP_JOBS,
    inFlight: IN_FLIGHT,
  });
  return (JOBS / drainMs) * 1000;
}

async function drainFilled(engine: QueueEngine, url: string, jobs: number): Promise<number> {
  await askQueue(engine, { task: 'fill', url, jobs, workMs: 0 });
  return withProcesses(async (start) => {
    const worker = start(engine, { task: 'serve', url, isTuned: true, jobs, processes: 1 });
    await worker.next();
    const { drainMs } = await worker.next<ServeAnswer>();
    return (jobs / drainMs) * 1000;
  });
}

function linesOf(label: string, { onPostgres, onSqlite }: Found, notes = NOTES): Measurement[] {
  const beside = (own: number | undefined, note: string | undefined): string =>
    [ratios(own, onPostgres), note].filter(Boolean).join('; ');
  return [
    {
      label: `${label}: Everstep on Postgres`,
      value: rate(onPostgres.everstep),
      ratio: beside(onPostgres.everstep, notes.everstep),
    },
    {
      label: `${label}: Everstep on SQLite`,
      value: rate(onSqlite),
      ratio: beside(onSqlite, notes.everstep),
    },
    ...ENGINES.filter((engine) => engine !== 'everstep' && engine in onPostgres).map((engine) => ({
      label: `${label}: ${NAMES[engine]}`,
      value: rate(onPostgres[engine]),
      ratio: notes[engine],
    })),
  ];
}
