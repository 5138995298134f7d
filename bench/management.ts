// Managing many workflows: finding them in a long history, stopping trees of them, and clearing old ones away beside a
// running load.
import { openDatabases } from './engine/databases.js';
import { benchCollection, benchRetention } from './management/collection.js';
import { benchListing } from './management/listing.js';
import { benchTree } from './management/tree.js';

export async function benchManagement(): Promise<void> {
  const databases = await openDatabases();
  // For work on one figure: BENCH_ONLY=tree
  const only = process.env['BENCH_ONLY']?.split(',');
  try {
    for (const [name, bench] of Object.entries(FIGURES)) {
      if (only === undefined || only.includes(name)) await bench(databases);
    }
  } finally {
    await databases.close();
  }
}

const FIGURES = {
  listing: benchListing,
  tree: benchTree,
  gc: benchCollection,
  retention: benchRetention,
} as const;
