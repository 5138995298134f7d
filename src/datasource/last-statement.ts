// The last statement of a transaction. If the driver supports it, COMMIT goes in the same round trip.
import type { Rendered } from '../sql/sql.js';
import type { TransactionDriver } from './driver.js';
import { isPGKeyConflictError, isRefusal } from './failures.js';

/**
 * Runs the statement: on Postgres one that fails unless it writes its row, on SQLite one that returns the row. False if
 * it wrote none; then nothing is committed.
 */
export async function writeLast<Client>(
  driver: TransactionDriver<Client>,
  client: Client,
  { text, values }: Rendered,
): Promise<boolean> {
  if (driver.dialect === 'sqlite') return (await driver.query(client, text, values)).length === 1;
  try {
    if (driver.finish) await driver.finish(client, text, values);
    else await driver.query(client, text, values);
    return true;
  } catch (error) {
    if (isRefusal(error) || isPGKeyConflictError(error)) return false;
    throw error;
  }
}
