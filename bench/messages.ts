// Messages, events and streams against DBOS 5.3.0, on one Postgres server in one run.
import { type Databases, openDatabases } from './engine/databases.js';
import { compare } from './engine/engines.js';
import { compileWorkers, installPeers } from './engine/preparations.js';
import { ask, type Engine, WorkerProcess } from './engine/workers.js';
import type { DurationAnswer, LatencyAnswer, MessagingCommand } from './messages/commands.js';
import { median, printTable } from './report.js';

const ROUNDS = 400;
const WAITERS = 5000;
const MESSAGES = 10_000;
const VALUES = 10_000;
const PEERS: readonly Engine[] = ['everstep', 'dbos-5'];

export async function benchMessages(): Promise<void> {
  installPeers();
  compileWorkers();
  console.log('A ratio says how many times better Everstep is than the library named with it.');
  const databases = await openDatabases();
  // For work on one figure: BENCH_ONLY=messages,streams
  const only = process.env['BENCH_ONLY']?.split(',');
  try {
    for (const [name, print] of Object.entries(FIGURES)) {
      if (only === undefined || only.includes(name)) await print(databases);
    }
  } finally {
    await databases.close();
  }
}

const FIGURES = {
  messages: async (databases: Databases) =>
    printTable('one way on Postgres, median', await latency(databases, 'send → recv', 'ask-messages')),
  events: async (databases: Databases) =>
    printTable('one way on Postgres, median', await latency(databases, 'setEvent → getEvent', 'ask-events')),
  'fan-in': async (databases: Databases) =>
    printTable(
      'throughput on Postgres',
      await duration(databases, `${MESSAGES} messages to 100 workflows`, { task: 'fan-in', values: MESSAGES }),
    ),
  streams: async (databases: Databases) =>
    printTable(
      'throughput on Postgres',
      await duration(databases, `a stream of ${VALUES} values, read by another process`, {
        task: 'read-stream',
        values: VALUES,
      }),
    ),
} as const;

type Ask = Omit<MessagingCommand, 'url'>;

async function latency(databases: Databases, name: string, task: MessagingCommand['task']) {
  const lines = [];
  for (const [place, command] of [
    ['in a process', { task, rounds: ROUNDS }],
    ['between two', { task, rounds: ROUNDS, isRemote: true }],
    [`in a process, ${WAITERS} others wait`, { task, rounds: ROUNDS, waiters: WAITERS }],
    [`between two, ${WAITERS} others wait`, { task, rounds: ROUNDS, waiters: WAITERS, isRemote: true }],
  ] as const) {
    const figures = await measure(databases, command, (answer) => median((answer as LatencyAnswer).rounds));
    lines.push(
      ...compare({ label: `${name}, ${place}`, figures, isMoreBetter: false, format: (ms) => `${ms.toFixed(2)} ms` }),
    );
  }
  return lines;
}

async function duration(databases: Databases, label: string, command: Ask) {
  const figures = await measure(databases, command, (answer) => (answer as DurationAnswer).elapsedMs);
  return compare({ label, figures, isMoreBetter: false, format: (ms) => `${(ms / 1000).toFixed(2)} s` });
}

/** One figure of each library, in turn and on a database of its own. */
async function measure(databases: Databases, command: Ask, figure: (answer: unknown) => number) {
  const figures = { everstep: NaN, 'dbos-5': NaN };
  for (const engine of PEERS) {
    const url = await databases.postgres();
    const isServed = command.isRemote === true || command.task === 'read-stream';
    const server = isServed
      ? new WorkerProcess(engine, { url, task: 'serve', values: command.values }, 'messages')
      : undefined;
    await server?.next();
    figures[engine as keyof typeof figures] = figure(await ask(engine, { ...command, url }, 'messages'));
    server?.kill();
    await server?.ended();
  }
  return figures;
}
