// What an engine costs while it has little to do: statements of an idle one, memory of workflows that sleep.
import { type Measurement, printTable } from '../report.js';
import type { IdleAnswer, SleepersAnswer } from './commands.js';
import type { Databases } from './databases.js';
import { compare, measureEach, pick } from './engines.js';
import { ask, type Engine } from './workers.js';

const IDLE_MS = 30_000;
const SLEEPERS = 10_000;
const PEER_SLEEPERS = 2000;

const whole = (value: number): string => Math.round(value).toLocaleString('en');

/** All at the same time: an idle engine disturbs nobody. */
export async function printIdle(databases: Databases): Promise<void> {
  const perMinute = async (engine: Engine, url: string): Promise<number> =>
    (await ask<IdleAnswer>(engine, { task: 'idle', url, windowMs: IDLE_MS })).statementsPerMinute;
  const [everstep, five, four, sqlite] = await Promise.all([
    perMinute('everstep', await databases.postgres({ isCounted: true })),
    perMinute('dbos-5', await databases.postgres({ isCounted: true })),
    perMinute('dbos-4', await databases.postgres({ isCounted: true })),
    perMinute('everstep', databases.sqlite()),
  ]);
  const lines: Measurement[] = [
    ...compare({
      label: 'Postgres',
      figures: { everstep, 'dbos-5': five, 'dbos-4': four },
      isMoreBetter: false,
      format: whole,
    }),
    { label: 'SQLite: Everstep', value: whole(sqlite), ratio: 'without PRAGMA data_version' },
  ];
  printTable(`idle: statements a minute, from ${IDLE_MS / 1000} s`, lines);
}

export async function printMemory(databases: Databases): Promise<void> {
  const answers = await measureEach(async (engine) =>
    ask<SleepersAnswer>(engine, {
      task: 'sleepers',
      url: await databases.postgres(),
      workflows: engine === 'everstep' ? SLEEPERS : PEER_SLEEPERS,
    }),
  );
  printTable(
    `memory: heap of a workflow in DBOS.sleep, ${whole(SLEEPERS)} of them (${whole(PEER_SLEEPERS)} on DBOS)`,
    compare({
      label: 'each',
      figures: pick(answers, ({ heapBytesPerWorkflow }) => heapBytesPerWorkflow / 1024),
      isMoreBetter: false,
      format: (kilobytes) => `${kilobytes.toFixed(2)} KB`,
    }),
  );
}
