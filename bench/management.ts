// Managing many workflows: finding them in a long history.
import { openDatabases } from './engine/databases.js';
import { benchListing } from './management/listing.js';

export async function benchManagement(): Promise<void> {
  const databases = await openDatabases();
  try {
    await benchListing(databases);
  } finally {
    await databases.close();
  }
}
