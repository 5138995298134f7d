// More and more processes on one Postgres database: how fast they drain a queue, how evenly they share it, and what they send
// at rest. On a machine with few cores they compete for those, so the figures say more about fairness than about speed.
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { DBOSClient } from '../../src/index.js';
import type { Databases } from '../engine/databases.js';
import { ServerCounter } from '../engine/statements.js';
import { type Measurement, printTable } from '../report.js';
import { endProcess, startProcess } from './child-process.js';

const WORKER = new URL('./worker.ts', import.meta.url);
const COUNTS = (process.env['BENCH_PROCESSES'] ?? '1,2,4,8,16').split(',').map(Number);
const WORKFLOWS = Number(process.env['BENCH_WORKFLOWS'] ?? 5000);
const BATCH = 500;
const SETTLE_MS = 10_000;
const REST_MS = 20_000;

export async function printProcesses(databases: Databases): Promise<void> {
  const lines: Measurement[] = [];
  for (const count of COUNTS) {
    const { rate, shares, perSecond } = await measure(await databases.postgres({ isCounted: true }), count);
    const fairness = (Math.max(...shares) / Math.max(1, Math.min(...shares))).toFixed(1);
    lines.push({
      label: `${count} processes`,
      value: `${Math.round(rate).toLocaleString('en')}/s, max/min ${fairness}, ${(perSecond / count).toFixed(2)} statements/s each at rest`,
    });
  }
  printTable(`Processes on one queue: ${WORKFLOWS.toLocaleString('en')} workflows of 3 steps`, lines);
}

async function measure(url: string, count: number) {
  // The first creates the tables.
  const workers = [await startProcess(WORKER, url, 'worker-0')];
  const others = Array.from({ length: count - 1 }, (_, index) => startProcess(WORKER, url, `worker-${index + 1}`));
  workers.push(...(await Promise.all(others)));
  const client = await DBOSClient.create({ systemDatabaseUrl: url });
  const session = new pg.Client(url);
  await session.connect();
  const counter = await ServerCounter.connect(url);
  try {
    await client.registerQueue('q');
    await client.pauseQueue('q');
    await enqueue(client);
    const startedAt = performance.now();
    await client.resumeQueue('q');
    const shares = await drained(session);
    const rate = (WORKFLOWS / (performance.now() - startedAt)) * 1000;
    await sleep(SETTLE_MS);
    const before = await counter.statements();
    await sleep(REST_MS);
    const perSecond = ((await counter.statements()) - before) / (REST_MS / 1000);
    // A process that got nothing is not in the table.
    return { rate, perSecond, shares: [...shares, ...Array<number>(count - shares.length).fill(0)] };
  } finally {
    await counter.close();
    await session.end();
    await client.destroy();
    await Promise.all(workers.map(endProcess));
  }
}

async function enqueue(client: DBOSClient): Promise<void> {
  for (let sent = 0; sent < WORKFLOWS; sent += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, WORKFLOWS - sent) }, () =>
      client.enqueue({ queueName: 'q', workflowName: 'work', applicationName: 'bench' }),
    );
    await Promise.all(batch);
  }
}

/** How many workflows each process has run, when all are done. */
async function drained(session: pg.Client): Promise<number[]> {
  for (;;) {
    const { rows } = await session.query<{ n: string }>(
      `SELECT COUNT(*) AS n FROM dbos.workflow_status WHERE status = 'SUCCESS' GROUP BY executor_id`,
    );
    const shares = rows.map(({ n }) => Number(n));
    if (shares.reduce((sum, share) => sum + share, 0) >= WORKFLOWS) return shares;
    await sleep(50);
  }
}
