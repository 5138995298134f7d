// Idle queues: how long a job waits in one, with the default settings of each library, and what they cost.
import type { Databases } from '../engine/databases.js';
import { type Measurement, printTable } from '../report.js';
import type { LatencyAnswer, QueueEngine } from './commands.js';
import { milliseconds, NAMES } from './figures.js';
import { measureIdle, printIdle } from './idle-figures.js';
import { askQueue, attempt, withProcesses } from './processes.js';

/** Warm-up included. */
const OFTEN = { samples: 210, gapMs: 12 } as const;
/** Those that poll get fewer jobs, and far enough apart that the queue is empty in between. */
const SIZES: Readonly<Record<QueueEngine, { readonly samples: number; readonly gapMs: number }>> = {
  everstep: OFTEN,
  'dbos-5': { samples: 20, gapMs: 700 },
  'graphile-worker': OFTEN,
  'pg-boss': { samples: 8, gapMs: 2200 },
};
const NOTES: Readonly<Record<QueueEngine, string>> = {
  everstep: 'woken, polls every 15 s besides',
  'dbos-5': 'polls every 1 s',
  'graphile-worker': 'woken by NOTIFY, polls every 2 s besides',
  'pg-boss': 'polls every 2 s',
};

interface Case {
  readonly label: string;
  readonly note: string;
  readonly alone: LatencyAnswer | undefined;
  readonly between: LatencyAnswer | undefined;
}

export async function printIdleQueues(databases: Databases): Promise<void> {
  const woken = [
    await measure('everstep', 'Everstep on Postgres', () => databases.postgres()),
    await measure('everstep', 'Everstep on SQLite', async () => databases.sqlite()),
    await measure('graphile-worker', NAMES['graphile-worker'], () => databases.postgres()),
  ];
  // Those that poll rest nearly all the time and do not disturb each other.
  const [idle, ...polling] = await Promise.all([
    measureIdle(databases),
    measure('dbos-5', NAMES['dbos-5'], () => databases.postgres()),
    measure('pg-boss', NAMES['pg-boss'], () => databases.postgres()),
  ]);
  const cases = [...woken, ...polling];
  const lines = (['alone', 'between'] as const).flatMap((where) =>
    cases.map((one): Measurement => {
      const found = one[where];
      return {
        label: `${where === 'alone' ? 'same process' : 'two processes'}: ${one.label}`,
        value: milliseconds(found?.median),
        ratio: found && `p95 ${milliseconds(found.p95)}, ${found.samples} jobs, ${one.note}`,
      };
    }),
  );
  printTable('enqueue → start on an idle queue, default settings: from the call to the first line of the job', lines);
  printIdle(idle);
}

async function measure(engine: QueueEngine, label: string, url: () => Promise<string>): Promise<Case> {
  const size = SIZES[engine];
  const note = NOTES[engine];
  const alone = async (): Promise<LatencyAnswer> => askQueue(engine, { task: 'latency', url: await url(), ...size });
  const between = async (): Promise<LatencyAnswer> => {
    const target = await url();
    return withProcesses(async (start) => {
      const worker = start(engine, { task: 'serve', url: target, jobs: size.samples, processes: 1 });
      await worker.next();
      start(engine, { task: 'send', url: target, ...size });
      return worker.next<LatencyAnswer>();
    });
  };
  // Those that poll take their time; both ways at once do no harm.
  if (size !== OFTEN) {
    const [first, second] = await Promise.all([
      attempt(`latency in one process: ${label}`, alone),
      attempt(`latency between processes: ${label}`, between),
    ]);
    return { label, note, alone: first, between: second };
  }
  return {
    label,
    note,
    alone: await attempt(`latency in one process: ${label}`, alone),
    between: await attempt(`latency between processes: ${label}`, between),
  };
}
