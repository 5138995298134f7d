// Plugins: transactions of data sources.
import { openDatabases } from './engine/databases.js';
import { compileWorkers, installPeers } from './engine/preparations.js';
import { printTransactions } from './plugins/transactions.js';

export async function benchPlugins(): Promise<void> {
  installPeers();
  compileWorkers();
  const databases = await openDatabases();
  try {
    await printTransactions(databases);
  } finally {
    await databases.close();
  }
}
