// Commits in flight: throughput with 1, 2 and 4 of them, and what a lock that another session holds costs other workflows.
import pg from 'pg';
import { createDBOS } from '../../src/faces/library/dbos.js';
import type { Databases } from '../engine/databases.js';
import { type Measurement, median, printTable } from '../report.js';

const PASSES = 3;
const PASS_MS = 1500;
const CONCURRENT = [100, 400, 1000];
/** Half of the pool may commit. */
const POOLS = [2, 4, 8];

export async function printCommits(databases: Databases): Promise<void> {
  const engines = [];
  for (const poolSize of POOLS) engines.push({ commits: poolSize / 2, ...(await launch(databases, poolSize)) });
  const lines: Measurement[] = [];
  for (const concurrent of CONCURRENT) {
    const rates = engines.map((): number[] => []);
    // In turns, so that all meet the same moments of a busy machine.
    for (let pass = 0; pass < PASSES; pass += 1) {
      for (const [index, { work }] of engines.entries()) rates[index]?.push(await rateOf(work, concurrent));
    }
    for (const [index, { commits }] of engines.entries()) {
      const value = `${Math.round(median(rates[index] ?? [])).toLocaleString('en')}/s`;
      lines.push({ label: `${concurrent} workflows at a time, up to ${commits} in flight`, value });
    }
  }
  printTable('Commits in flight: workflows of 3 steps, medians', lines);
  const locked: Measurement[] = [];
  for (const { commits, work, url } of engines) {
    const ms = await longestBesideLock(work, url);
    locked.push({ label: `up to ${commits} in flight`, value: `${Math.round(ms)} ms` });
  }
  printTable('Longest of 200 workflows, one after the other, while the row of another one is locked', locked);
  for (const { DBOS } of engines) await DBOS.shutdown();
}

type Work = (workflowID?: string) => Promise<unknown>;

async function launch(databases: Databases, poolSize: number) {
  const url = await databases.postgres();
  const DBOS = createDBOS();
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl: url, systemDatabasePoolSize: poolSize, logLevel: 'error' });
  const workflow = DBOS.registerWorkflow(
    async () => {
      for (let n = 0; n < 3; n += 1) await DBOS.runStep(() => Promise.resolve(n), { name: 'step' });
    },
    { name: 'work' },
  );
  await DBOS.launch();
  const work: Work = (workflowID) => (workflowID ? DBOS.withNextWorkflowID(workflowID, () => workflow()) : workflow());
  await rateOf(work, 100);
  return { DBOS, url, work };
}

async function rateOf(work: Work, concurrent: number): Promise<number> {
  const startedAt = performance.now();
  let done = 0;
  const loop = async (): Promise<void> => {
    for (; performance.now() - startedAt < PASS_MS; done += 1) await work();
  };
  await Promise.all(Array.from({ length: concurrent }, loop));
  return (done / (performance.now() - startedAt)) * 1000;
}

/** Another session is about to create the workflow that is started first: it waits for that session. */
async function longestBesideLock(work: Work, url: string): Promise<number> {
  const session = new pg.Client(url);
  await session.connect();
  await session.query('BEGIN');
  await session.query(
    `INSERT INTO dbos.workflow_status (workflow_uuid, status, name) VALUES ('locked', 'SUCCESS', 'work')`,
  );
  const blocked = work('locked').catch(() => {});
  // Its commit is on its way before the others are.
  await new Promise((resolve) => setTimeout(resolve, 20));
  let longest = 0;
  for (let n = 0; n < 200; n += 1) {
    const startedAt = performance.now();
    await work();
    longest = Math.max(longest, performance.now() - startedAt);
  }
  await session.query('ROLLBACK');
  await session.end();
  await blocked;
  return longest;
}
