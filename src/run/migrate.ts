// `DBOS.migrate`: migrates the system database without launching an engine.
import type { DLogger } from '../kernel/base/log.js';
import { Store } from './writer/store.js';

export async function migrateDatabase(
  url: string,
  options: { readonly schemaName?: string; readonly applicationRole?: string },
  logger: DLogger,
): Promise<void> {
  const store = await Store.open({ url, schema: options.schemaName, logger });
  try {
    if (options.applicationRole !== undefined) {
      const { grantAccess } = await import('../database/migrations/migrate.js');
      await grantAccess(store.database, { schema: options.schemaName, role: options.applicationRole });
    }
  } finally {
    await store.close();
  }
}
