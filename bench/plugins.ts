// What plugins cost: transactions of data sources, and receivers.
import { openDatabases } from './engine/databases.js';
import { compileWorkers, installPeers } from './engine/preparations.js';
import { printTransactions } from './plugins/transactions.js';
import { benchReceivers } from './receivers/figures.js';

/** `BENCH_ONLY=transactions,receivers` chooses. */
export async function benchPlugins(): Promise<void> {
  const only = process.env['BENCH_ONLY']?.split(',');
  if (!only || only.includes('transactions')) await benchTransactions();
  if (!only || only.includes('receivers')) await benchReceivers();
}

async function benchTransactions(): Promise<void> {
  installPeers();
  compileWorkers();
  const databases = await openDatabases();
  try {
    await printTransactions(databases);
  } finally {
    await databases.close();
  }
}
