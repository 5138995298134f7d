// Everything that needs `pg` to open the system database. It is loaded only for a Postgres URL: `pg` takes longer to load
// than the rest of the package.
import type { Clock } from '../../base/clock.js';
import { createPostgresDatabase } from '../migrations/create-database.js';
import { CHANNELS } from '../notify/topics.js';
import type { StoreOptions } from '../store-options.js';
import { PostgresDatabase } from './postgres-database.js';
import { PostgresListener } from './postgres-listener.js';

export async function openPostgres(
  options: StoreOptions & { readonly clock: Clock },
): Promise<{ database: PostgresDatabase; listener: PostgresListener }> {
  if ((options.runMigrations ?? true) && options.pool === undefined) {
    await createPostgresDatabase(options.url, options);
  }
  const database = new PostgresDatabase(options);
  const listener = new PostgresListener(database, {
    clock: options.clock,
    logger: options.logger,
    channels: (options.useListenNotify ?? true) ? CHANNELS : [],
    sessionLock: options.sessionLock,
    coalesceMs: options.notificationCoalesceMs,
  });
  return { database, listener };
}
