// The last statement of a transaction. If the driver supports it, COMMIT goes in the same round trip.
import type { Rendered } from '../../kernel/sql/sql.js';
import type { Row, TransactionDriver } from './driver.js';
import { isRecordConflict, isRefusal } from './failures.js';

/**
 * Runs the statement: on Postgres one that fails unless it writes its row, on SQLite one that returns the row. Undefined if
 * it wrote none; then nothing is committed.
 */
export async function writeLast<Client>(
  driver: TransactionDriver<Client>,
  client: Client,
  { text, values }: Rendered,
): Promise<readonly Row[] | undefined> {
  if (driver.dialect === 'sqlite') {
    const written = await driver.query(client, text, values);
    return written.length === 1 ? written : undefined;
  }
  try {
    const written = await (driver.finish ? driver.finish(client, text, values) : driver.query(client, text, values));
    return written ?? [];
  } catch (error) {
    if (isRefusal(error) || isRecordConflict(error)) return undefined;
    throw error;
  }
}
