// The engine against both generations of DBOS, on one Postgres server in one run. Each library runs in processes of its
// own, one after the other, with its default settings.
import { openDatabases } from './engine/databases.js';
import { printLatency } from './engine/latency-figures.js';
import { printStatements, printThroughput } from './engine/load-figures.js';
import { compileWorkers, installPeers } from './engine/preparations.js';
import { printRecovery, printTakeOver } from './engine/recovery-figures.js';
import { printIdle, printMemory } from './engine/rest-figures.js';
import { printTails } from './engine/tail-figures.js';

export async function benchEngine(): Promise<void> {
  installPeers();
  compileWorkers();
  console.log('A ratio says how many times better Everstep is than the library named with it.');
  const databases = await openDatabases();
  // For work on one figure: BENCH_ONLY=latency,tails
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
  throughput: printThroughput,
  latency: printLatency,
  tails: printTails,
  statements: printStatements,
  takeOver: printTakeOver,
  recovery: printRecovery,
  memory: printMemory,
  idle: printIdle,
} as const;
