// Many engines that have nothing to do, in this process, on one Postgres database: their connections and statements.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { createDBOS, type DBOSInstance } from '../../src/facade/dbos.js';
import type { Databases } from '../engine/databases.js';
import { ServerCounter } from '../engine/statements.js';
import { printTable } from '../report.js';

const ENGINES = Number(process.env['BENCH_IDLE_ENGINES'] ?? 200);
const SETTLE_MS = 30_000;
const REST_MS = 30_000;

export async function printIdle(databases: Databases): Promise<void> {
  const url = await databases.postgres({ isCounted: true });
  const engines: DBOSInstance[] = [];
  for (let n = 0; n < ENGINES; n += 1) {
    const DBOS = createDBOS();
    DBOS.setConfig({ name: 'bench', systemDatabaseUrl: url, applicationVersion: '1', logLevel: 'error' });
    DBOS.registerWorkflow(async () => {}, { name: 'work' });
    await DBOS.launch();
    engines.push(DBOS);
  }
  await sleep(SETTLE_MS);
  const counter = await ServerCounter.connect(url);
  const before = await counter.statements();
  const cpu = process.cpuUsage();
  await sleep(REST_MS);
  const { user, system } = process.cpuUsage(cpu);
  const statements = (await counter.statements()) - before;
  const session = new pg.Client(url);
  await session.connect();
  const { rows } = await session.query<{ n: string }>(
    `SELECT COUNT(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
  await session.end();
  await counter.close();
  const perEngine = (value: number): string => (value / ENGINES).toFixed(2);
  printTable(`${ENGINES} idle engines on one database`, [
    { label: 'connections', value: `${rows[0]?.n}, ${perEngine(Number(rows[0]?.n))} each` },
    { label: 'statements per second', value: `${perEngine(statements / (REST_MS / 1000))} each` },
    { label: 'CPU of the process', value: `${((user + system) / 10 / REST_MS).toFixed(1)} % of a core` },
  ]);
  for (const DBOS of engines) await DBOS.shutdown();
}
