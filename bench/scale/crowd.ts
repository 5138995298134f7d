// Many engines on one Postgres database: what one enqueued workflow costs all of them, and what they cost at rest.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { createDBOS, type DBOSInstance } from '../../src/faces/library/dbos.js';
import { DBOSClient } from '../../src/index.js';
import { PostgresDatabase } from '../../src/database/postgres/postgres-database.js';
import type { Databases } from '../engine/databases.js';
import { median, printTable } from '../report.js';

const SIZES = (process.env['BENCH_ENGINES'] ?? '1,4,12').split(',').map(Number);
const ENQUEUED = 40;
const PAUSE_MS = 250;
const SETTLE_MS = 15_000;
const REST_MS = 30_000;

export async function printCrowd(databases: Databases): Promise<void> {
  for (const size of SIZES) {
    const url = await databases.postgres();
    const crowd = await launch(url, size);
    const client = await DBOSClient.create({ systemDatabaseUrl: url });
    await sleep(SETTLE_MS);
    const counter = countStatements();
    await sleep(REST_MS);
    const atRest = counter.statements;
    const connections = await countConnections(url);
    counter.reset();
    for (let n = 0; n < ENQUEUED; n += 1) {
      const handle = await client.enqueue(
        { queueName: 'q', workflowName: 'work', applicationName: 'bench' },
        performance.now(),
      );
      await handle.getResult();
      await sleep(PAUSE_MS);
    }
    printTable(`${size} engines on one database`, [
      { label: 'claims per enqueued workflow', value: (counter.claims / ENQUEUED).toFixed(1) },
      { label: 'enqueue → start, median', value: `${median(crowd.startsMs).toFixed(1)} ms` },
      { label: 'statements per second at rest, each', value: (atRest / (REST_MS / 1000) / size).toFixed(2) },
      { label: 'connections at rest, each', value: (connections / size).toFixed(1) },
    ]);
    counter.stop();
    await client.destroy();
    for (const DBOS of crowd.engines) await DBOS.shutdown();
  }
}

async function launch(url: string, size: number): Promise<{ engines: DBOSInstance[]; startsMs: number[] }> {
  const engines: DBOSInstance[] = [];
  const startsMs: number[] = [];
  for (let n = 0; n < size; n += 1) {
    const DBOS = createDBOS();
    DBOS.setConfig({ name: 'bench', systemDatabaseUrl: url, applicationVersion: '1', logLevel: 'error' });
    DBOS.registerWorkflow(async (sentAt: number) => void startsMs.push(performance.now() - sentAt), { name: 'work' });
    await DBOS.launch();
    if (n === 0) await DBOS.registerQueue('q');
    engines.push(DBOS);
  }
  return { engines, startsMs };
}

/** Counts what all engines of this process send. */
function countStatements() {
  const counter = { statements: 0, claims: 0, reset: () => {}, stop: () => {} };
  const prototype = PostgresDatabase.prototype as unknown as Record<
    string,
    (sent: unknown, ...rest: unknown[]) => unknown
  >;
  const stops = ['commit', 'run', 'read'].map((name) => {
    const original = prototype[name];
    prototype[name] = function (sent, ...rest) {
      counter.statements += Array.isArray(sent) ? sent.length : 1;
      if (name === 'commit' && JSON.stringify(sent).includes('unversioned')) counter.claims += 1;
      return original?.call(this, sent, ...rest);
    };
    return () => Object.assign(prototype, { [name]: original });
  });
  counter.reset = () => Object.assign(counter, { statements: 0, claims: 0 });
  counter.stop = () => stops.forEach((stop) => stop());
  return counter;
}

async function countConnections(url: string): Promise<number> {
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query<{ n: string }>(
    `SELECT COUNT(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
  await client.end();
  return Number(rows[0]?.n);
}
