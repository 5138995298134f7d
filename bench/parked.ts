// Parked workflows on Postgres: what a million of them cost one process, and how late they continue. PARKED sets how many.
import { internals } from '../src/kernel/base/internals.js';
import { silentLogger } from '../src/kernel/base/log.js';
import { createDBOS, type DBOSInstance } from '../src/faces/library/dbos.js';
import { topics } from '../src/database/notify/topics.js';
import { openDatabases } from './engine/databases.js';
import { compiledPath, compileWorkers } from './engine/preparations.js';
import { ScriptProcess } from './engine/workers.js';
import { addSleepers, makeReceivers } from './parked/rows.js';
import { median, type Measurement, perSecond, printTable, timed } from './report.js';

const SLEEPERS = Number(process.env['PARKED'] ?? 1_000_000);
const RECEIVERS = SLEEPERS / 10;
const TOGETHER = 10_000;
const PER_SECOND = 500;
const SECONDS = 10;
const MESSAGES = 500;
/** Runs that really leave. */
const LEAVING = 5_000;
const DAY_MS = 86_400_000;
/** For the rows to be there before they are due. */
const LEAD_MS = 5_000;

export async function benchParked(): Promise<void> {
  compileWorkers();
  const databases = await openDatabases();
  try {
    await benchPostgres(await databases.postgres());
  } finally {
    await databases.close();
  }
}

/** When each workflow continued, by its number. */
type Times = Map<number, number>;

async function benchPostgres(url: string): Promise<void> {
  const woken: Times = new Map();
  const DBOS = createDBOS();
  DBOS.setConfig({ name: 'bench', applicationVersion: 'v1', systemDatabaseUrl: url, logger: silentLogger });
  const sleeper = DBOS.registerWorkflow(
    async (number: number) => {
      await DBOS.sleep(DAY_MS);
      woken.set(number, Date.now());
    },
    { name: 'sleeper' },
  );
  DBOS.registerWorkflow(
    async (number: number) => {
      await DBOS.recv('t', DAY_MS / 1000);
      woken.set(number, Date.now());
    },
    { name: 'receiver' },
  );
  await DBOS.launch();
  const lines: Measurement[] = [await measureLeaving(DBOS, (number) => DBOS.startWorkflow(sleeper)(number))];
  await fill(DBOS);
  await DBOS.shutdown();

  lines.push(await measureMemory(url));
  const launchMs = await timed(() => DBOS.launch());
  lines.push(
    { label: 'launch', value: `${whole(launchMs)} ms` },
    await measureTogether(DBOS, woken),
    await measureLateness(DBOS, woken),
    await measureMessages(DBOS, woken),
  );
  await DBOS.shutdown();
  const counts = `${SLEEPERS.toLocaleString('en')} sleepers, ${RECEIVERS.toLocaleString('en')} receivers`;
  printTable(`parked on postgres: ${counts}, one process`, lines);
}

/** Of an engine in a process of its own: this one also holds what the benchmark has done. */
async function measureMemory(url: string): Promise<Measurement> {
  const script = new ScriptProcess(compiledPath(new URL('./parked/engine.ts', import.meta.url)), [url]);
  const { before, rss } = await script.next<{ readonly before: number; readonly rss: number }>();
  await script.ended();
  const megabytes = (bytes: number): string => `${whole(bytes / 1e6)} MB`;
  return {
    label: 'memory of a process with an engine',
    value: megabytes(rss),
    ratio: `RSS, ${megabytes(before)} before its launch`,
  };
}

/** As a run that leaves announces it. */
function announce(DBOS: DBOSInstance): void {
  DBOS[internals].engineFor('the benchmark').runtime.bus.publish(topics.delays, '');
}

function databaseOf(DBOS: DBOSInstance) {
  return DBOS[internals].operator.store.database;
}

async function measureLeaving(DBOS: DBOSInstance, start: (number: number) => Promise<unknown>): Promise<Measurement> {
  const { runs } = DBOS[internals].engineFor('the benchmark');
  const elapsedMs = await timed(async () => {
    for (let first = 0; first < LEAVING; first += 500) {
      await Promise.all(Array.from({ length: 500 }, (_, index) => start(first + index)));
    }
    await until(() => runs.all.length === 0);
  });
  return {
    label: `${LEAVING.toLocaleString('en')} workflows start, sleep and leave`,
    value: perSecond(LEAVING, elapsedMs),
  };
}

async function fill(DBOS: DBOSInstance): Promise<void> {
  const database = databaseOf(DBOS);
  const dueAt = Date.now() + DAY_MS;
  await addSleepers(database, { prefix: 's', workflow: 'sleeper', count: SLEEPERS, dueAt, apartMs: 0 });
  await addSleepers(database, { prefix: 'r', workflow: 'receiver', count: RECEIVERS, dueAt, apartMs: 0 });
  await makeReceivers(database, 'r', RECEIVERS);
}

async function measureTogether(DBOS: DBOSInstance, woken: Times): Promise<Measurement> {
  woken.clear();
  const dueAt = Date.now() + LEAD_MS;
  await addSleepers(databaseOf(DBOS), { prefix: 't', workflow: 'sleeper', count: TOGETHER, dueAt, apartMs: 0 });
  announce(DBOS);
  await until(() => woken.size === TOGETHER);
  const last = Math.max(...woken.values()) - dueAt;
  return { label: `${TOGETHER.toLocaleString('en')} due at once have continued after`, value: `${whole(last)} ms` };
}

async function measureLateness(DBOS: DBOSInstance, woken: Times): Promise<Measurement> {
  woken.clear();
  const count = PER_SECOND * SECONDS;
  const apartMs = 1000 / PER_SECOND;
  const dueAt = Date.now() + LEAD_MS;
  await addSleepers(databaseOf(DBOS), { prefix: 'l', workflow: 'sleeper', count, dueAt, apartMs });
  announce(DBOS);
  await until(() => woken.size === count);
  const lateness = [...woken].map(([number, at]) => at - dueAt - number * apartMs).sort((a, b) => a - b);
  const p99 = lateness[Math.floor(lateness.length * 0.99)] ?? NaN;
  return {
    label: `continued late, ${PER_SECOND} due each second`,
    value: `${whole(median(lateness))} ms`,
    ratio: `p99 ${whole(p99)} ms`,
  };
}

async function measureMessages(DBOS: DBOSInstance, woken: Times): Promise<Measurement> {
  woken.clear();
  const latencies: number[] = [];
  for (let number = 0; number < MESSAGES; number += 1) {
    const sentAt = Date.now();
    await DBOS.send(`r${number}`, 'hello', 't');
    await until(() => woken.has(number));
    latencies.push((woken.get(number) ?? NaN) - sentAt);
  }
  const p99 = latencies.sort((a, b) => a - b)[Math.floor(MESSAGES * 0.99)] ?? NaN;
  return {
    label: 'from a message to its receiver',
    value: `${whole(median(latencies))} ms`,
    ratio: `p99 ${whole(p99)} ms`,
  };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}
