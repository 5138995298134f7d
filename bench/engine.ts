// The engine against both generations of DBOS, on one Postgres server in one run. Each library runs in processes of its
// own, one after the other, with its default settings.
import { openDatabases } from './engine/databases.js';
import { printLatency } from './engine/latency-figures.js';
import { printStatements, printThroughput } from './engine/load-figures.js';
import { compileWorkers, installPeers } from './engine/preparations.js';
import { printRecovery, printTakeOver } from './engine/recovery-figures.js';
import { printIdle, printMemory } from './engine/rest-figures.js';

export async function benchEngine(): Promise<void> {
  installPeers();
  compileWorkers();
  console.log('A ratio says how many times better Everstep is than the library named with it.');
  const databases = await openDatabases();
  try {
    await printThroughput(databases);
    await printLatency(databases);
    await printStatements(databases);
    await printTakeOver(databases);
    await printRecovery(databases);
    await printMemory(databases);
    await printIdle(databases);
  } finally {
    await databases.close();
  }
}
