// What workflows write to the WAL of Postgres, besides the copies of pages that a checkpoint of the server causes.
import pg from 'pg';
import { createDBOS } from '../../src/faces/library/dbos.js';
import type { Databases } from '../engine/databases.js';
import { printTable } from '../report.js';

const WORKFLOWS = 2000;
const CONCURRENT = 20;

export async function printWal(databases: Databases): Promise<void> {
  const url = await databases.postgres();
  const DBOS = createDBOS();
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl: url, applicationVersion: '1', logLevel: 'error' });
  const work = DBOS.registerWorkflow(
    async (steps: number) => {
      for (let n = 0; n < steps; n += 1) await DBOS.runStep(() => Promise.resolve(n), { name: 'step' });
    },
    { name: 'work' },
  );
  await DBOS.launch();
  const client = new pg.Client(url);
  await client.connect();
  const position = async (): Promise<number> => {
    const { rows } = await client.query<{ at: string }>(
      `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS at`,
    );
    return Number(rows[0]?.at);
  };
  const run = async (steps: number): Promise<number> => {
    const before = await position();
    for (let n = 0; n < WORKFLOWS; n += CONCURRENT) {
      await Promise.all(Array.from({ length: CONCURRENT }, () => work(steps)));
    }
    return (await position()) - before;
  };
  const lines = [];
  for (const steps of [0, 1, 10]) {
    await run(steps);
    const bytes = await run(steps);
    lines.push({ label: `${steps} steps`, value: `${Math.round(bytes / WORKFLOWS).toLocaleString('en')} bytes` });
  }
  printTable(`WAL per workflow, ${CONCURRENT} at a time`, lines);
  await client.end();
  await DBOS.shutdown();
}
