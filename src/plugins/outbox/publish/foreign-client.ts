// Recognizes a client that is in no transaction: a pool, or a connection before BEGIN. A message published there would
// commit by itself, whatever becomes of the user's write.
import { OutboxTransactionRequiredError } from '../../../kernel/errors/errors.js';

type Properties = Readonly<Record<string, unknown>>;

export function refuseOutsideTransaction(client: unknown): void {
  const isObject = (typeof client === 'object' && client !== null) || typeof client === 'function';
  if (isObject && isDrizzleSqlite(client as Properties) && !('$client' in client)) {
    throw new OutboxTransactionRequiredError(
      "Drizzle's transactions on SQLite are synchronous: they end before a message can be published. Publish in runTransaction of the data source, or send BEGIN and COMMIT yourself and pass the database to using().",
    );
  }
  if (isObject && !isOutside(client as Properties)) return;
  throw new OutboxTransactionRequiredError(
    'using() needs the client of an open transaction, of the same library as the data source: what you passed is not in one.',
  );
}

/** How each library tells. A `pg` client that was checked out does not; whether it has sent BEGIN is up to the caller. */
function isOutside(client: Properties): boolean {
  // pg: a pool runs each statement on any connection.
  if ('totalCount' in client) return true;
  // better-sqlite3
  if (typeof client['inTransaction'] === 'boolean') return !client['inTransaction'];
  // Knex, Kysely
  if (typeof client['isTransaction'] === 'boolean') return !client['isTransaction'];
  // Prisma: the client of a transaction cannot open one.
  if ('$queryRawUnsafe' in client) return typeof client['$transaction'] === 'function';
  // postgres.js
  if ('unsafe' in client) return !('savepoint' in client);
  // TypeORM
  if ('queryRunner' in client) {
    return (client['queryRunner'] as Properties | undefined)?.['isTransactionActive'] !== true;
  }
  if (isDrizzleSqlite(client)) return (client['$client'] as Properties | undefined)?.['inTransaction'] !== true;
  // Drizzle on Postgres
  if ('_' in client && 'execute' in client) return !('rollback' in client);
  return false;
}

function isDrizzleSqlite(client: Properties): boolean {
  return '_' in client && 'run' in client && 'all' in client;
}
