// Engines that have nothing to do, in up to four processes, on one Postgres database: their connections, their statements,
// and which these are. A statement whose rate per engine grows with the number of engines is one that they cause each other.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Databases } from '../engine/databases.js';
import { ServerCounter } from '../engine/statements.js';
import { type Measurement, printTable } from '../report.js';
import { endProcess, startProcess } from './child-process.js';

const WORKER = new URL('./idle-worker.ts', import.meta.url);
const COUNTS = (process.env['BENCH_IDLE_ENGINES'] ?? '1,10,60,200').split(',').map(Number);
const REST_MS = Number(process.env['BENCH_IDLE_SECONDS'] ?? 120) * 1000;
const SETTLE_MS = 30_000;
const PROCESSES = 4;
const EXCERPT = 70;

export async function printIdle(databases: Databases): Promise<void> {
  for (const count of COUNTS) {
    printTable(
      `${count} idle engines on one database`,
      await measure(await databases.postgres({ isCounted: true }), count),
    );
  }
}

async function measure(url: string, count: number): Promise<Measurement[]> {
  // The first creates the tables.
  const workers = [await startProcess(WORKER, url, String(Math.ceil(count / PROCESSES)))];
  const others = Array.from({ length: PROCESSES - 1 }, (_, index) => Math.floor((count + index) / PROCESSES));
  workers.push(
    ...(await Promise.all(
      others.filter((engines) => engines > 0).map((engines) => startProcess(WORKER, url, String(engines))),
    )),
  );
  const counter = await ServerCounter.connect(url);
  try {
    await sleep(SETTLE_MS);
    const before = await counter.statementsByText();
    await sleep(REST_MS);
    const after = await counter.statementsByText();
    return describe(count, await counter.connections(), difference(before, after));
  } finally {
    await counter.close();
    await Promise.all(workers.map(endProcess));
  }
}

function difference(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): [string, number][] {
  return [...after]
    .map(([text, calls]): [string, number] => [text, calls - (before.get(text) ?? 0)])
    .filter(([, calls]) => calls > 0)
    .sort(([, a], [, b]) => b - a);
}

function describe(count: number, connections: number, calls: readonly [string, number][]): Measurement[] {
  const perEngine = (value: number): string => `${((value / count / REST_MS) * 1000).toFixed(3)}/s each`;
  return [
    { label: 'connections', value: `${connections}, ${(connections / count).toFixed(2)} each` },
    { label: 'statements', value: perEngine(calls.reduce((sum, [, n]) => sum + n, 0)) },
    ...calls.map(([text, n]) => ({
      label: `  ${text.replace(/\s+/g, ' ').slice(0, EXCERPT)}`,
      value: perEngine(n),
    })),
  ];
}
