// Queues against DBOS, pg-boss and graphile-worker, on one Postgres server in one run. Each library runs in processes of
// its own and in a fresh database. Job queues keep no checkpoints: they do less for a job than a workflow needs.
import { openDatabases } from './engine/databases.js';
import { compileWorkers, installPeers } from './engine/preparations.js';
import { printClaims } from './queues/claim-figures.js';
import { printBulk, printDrain } from './queues/drain-figures.js';
import { printIdleQueues } from './queues/latency-figures.js';
import { printLimit } from './queues/limit-figures.js';

export async function benchQueues(): Promise<void> {
  installPeers();
  compileWorkers();
  console.log('A ratio says how many times as fast Everstep is as the library named with it.');
  const databases = await openDatabases();
  // For work on one figure: BENCH_ONLY=idle,claims
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
  idle: printIdleQueues,
  drain: printDrain,
  bulk: printBulk,
  limit: printLimit,
  claims: printClaims,
} as const;
