// The outbox: what publishing, consuming and relaying cost. `npm run bench -- outbox drain fetch` chooses parts.
import { openDatabases } from './engine/databases.js';
import { compileWorkers, installPeers } from './engine/preparations.js';
import { printCosts, printDrain, printFetch, printLatency, printPublish, printRelays } from './outbox/figures.js';

export const OUTBOX_PARTS = {
  publish: printPublish,
  drain: printDrain,
  latency: printLatency,
  fetch: printFetch,
  relays: printRelays,
  costs: printCosts,
} as const;

export async function benchOutbox(parts: readonly string[]): Promise<void> {
  installPeers();
  compileWorkers();
  const databases = await openDatabases();
  try {
    for (const [name, print] of Object.entries(OUTBOX_PARTS)) {
      if (parts.length === 0 || parts.includes(name)) await print(databases);
    }
  } finally {
    await databases.close();
  }
}
