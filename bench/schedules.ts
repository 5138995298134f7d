// Ten thousand schedules in one process: its launch, its rest, and how late those are fired that are due together.
import { internals } from '../src/kernel/base/internals.js';
import { silentLogger } from '../src/kernel/base/log.js';
import { createDBOS, type DBOSInstance } from '../src/faces/library/dbos.js';
import { sql, table } from '../src/kernel/sql/sql.js';
import type { Database } from '../src/database/database.js';
import { openDatabases } from './engine/databases.js';
import { noteStatements } from './engine/statements.js';
import { median, type Measurement, printTable, timed } from './report.js';
import { addSchedules, readLateness } from './schedules/rows.js';

const RESTING = 10_000;
const TOGETHER = 100;
const LAUNCHES = 5;
const IDLE_MS = 10_000;
const FIRING_MS = 10_000;

export async function benchSchedules(): Promise<void> {
  const databases = await openDatabases();
  try {
    await benchDialect(await databases.postgres());
    await benchDialect(databases.sqlite());
  } finally {
    await databases.close();
  }
}

async function benchDialect(url: string): Promise<void> {
  const DBOS = createDBOS();
  DBOS.registerWorkflow(async () => {}, { name: 'tick' });
  DBOS.setConfig({ name: 'bench', applicationVersion: 'v1', systemDatabaseUrl: url, logger: silentLogger });
  const launch = () => timed(() => DBOS.launch());
  await launch();
  const { dialect } = databaseOf(DBOS);
  const empty = await measureIdle(databaseOf(DBOS));
  await addSchedules(databaseOf(DBOS), { prefix: 'resting', count: RESTING, isResting: true });
  await DBOS.shutdown();

  const launches: number[] = [];
  for (let round = 0; round < LAUNCHES; round += 1) {
    launches.push(await launch());
    if (round < LAUNCHES - 1) await DBOS.shutdown();
  }
  const idle = await measureIdle(databaseOf(DBOS));
  const lateness = await measureFiring(DBOS);
  await DBOS.shutdown();

  const lines: Measurement[] = [
    { label: 'launch', value: `${whole(median(launches))} ms`, ratio: `slowest ${whole(Math.max(...launches))} ms` },
    {
      label: 'CPU while nothing is due',
      value: `${idle.cpuPercent.toFixed(2)} %`,
      ratio: `without schedules ${empty.cpuPercent.toFixed(2)} %`,
    },
    {
      label: 'statements a minute while nothing is due',
      value: whole(idle.statements),
      ratio: `${whole(idle.ofSchedules)} of them about schedules`,
    },
    {
      label: `fired late, ${TOGETHER} due each second`,
      value: `${whole(median(lateness))} ms`,
      ratio: `p99 ${whole(percentile(lateness, 0.99))} ms, most ${whole(Math.max(...lateness))} ms, of ${lateness.length}`,
    },
  ];
  printTable(`schedules on ${dialect.name}: ${RESTING.toLocaleString('en')} active, one process`, lines);
}

function databaseOf(DBOS: DBOSInstance): Database {
  return DBOS[internals].operator.store.database;
}

interface Idle {
  /** Of one core, in this process. */
  readonly cpuPercent: number;
  /** A minute. */
  readonly statements: number;
  readonly ofSchedules: number;
}

async function measureIdle(database: Database): Promise<Idle> {
  // What a launch leaves to be done afterwards is not rest.
  await pause(2000);
  const sent = noteStatements(database);
  const before = process.cpuUsage();
  const elapsedMs = await timed(() => pause(IDLE_MS));
  const { user, system } = process.cpuUsage(before);
  const ofSchedules = sent.filter((text) => /schedules/.test(text) || /^\s*SELECT[^]{0,80} AS now\s*$/.test(text));
  const aMinute = 60_000 / elapsedMs;
  return {
    cpuPercent: (user + system) / 10 / elapsedMs,
    statements: sent.length * aMinute,
    ofSchedules: ofSchedules.length * aMinute,
  };
}

/** How late each occurrence was fired, in milliseconds by the clock of the database. */
async function measureFiring(DBOS: DBOSInstance): Promise<number[]> {
  const database = databaseOf(DBOS);
  await addSchedules(database, { prefix: 'together', count: TOGETHER, isResting: false });
  await DBOS[internals].engineFor('the benchmark').scheduler.reload();
  // Two seconds for the paths of the code to be warm.
  await pause(FIRING_MS + 2000);
  await database.run(sql`UPDATE ${table('workflow_schedules')} SET status = 'PAUSED'`);
  return readLateness(database, { prefix: 'together', lastMs: FIRING_MS });
}

function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}

function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}
