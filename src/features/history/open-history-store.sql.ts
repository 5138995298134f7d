// Opens a `HistoryStore` by its URL.
import { systemClock } from '../../kernel/base/clock.js';
import { consoleLogger } from '../../kernel/base/log.js';
import { openDatabase } from '../../run/writer/store.js';
import type { HistoryStore } from './history-store.sql.js';
import { MemoryHistoryStore } from './memory-history-store.sql.js';
import { SqlHistoryStore } from './sql-history-store.sql.js';

/** The store in the system database at this URL, which is migrated if needed; without one, a store in memory. */
export async function openHistoryStore(
  systemDatabaseUrl?: string,
  { systemDatabaseSchemaName: schema }: { readonly systemDatabaseSchemaName?: string } = {},
): Promise<HistoryStore> {
  if (systemDatabaseUrl === undefined) return new MemoryHistoryStore();
  const options = { url: systemDatabaseUrl, schema, logger: consoleLogger('warn'), clock: systemClock };
  const { database } = await openDatabase(options);
  const { migrate } = await import('../../database/migrations/migrate.js');
  await migrate(database, options);
  return new SqlHistoryStore(database);
}
