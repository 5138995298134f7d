// The statement that ends a transaction. Where the client can do that, it commits in the same round trip.
import type { Rendered } from '../sql/sql.js';
import type { TransactionDriver } from './driver.js';

const NOTHING_WRITTEN = 'everstep wrote nothing';

/** The statement as one that fails if it writes no row, so that the COMMIT behind it is skipped. */
function failingIfNone(text: string): string {
  return `WITH written AS (${text})
    SELECT CASE WHEN COUNT(*) = 1 THEN 1 ELSE ('${NOTHING_WRITTEN}: ' || COUNT(*))::int END FROM written`;
}

/** Runs the statement, which returns the row it writes. False if it has written none: then nothing is committed. */
export async function writeLast<Client>(
  driver: TransactionDriver<Client>,
  client: Client,
  { text, values }: Rendered,
): Promise<boolean> {
  if (!driver.finish) return (await driver.query(client, text, values)).length === 1;
  try {
    await driver.finish(client, failingIfNone(text), values);
    return true;
  } catch (error) {
    if (String((error as Error).message).includes(NOTHING_WRITTEN)) return false;
    throw error;
  }
}
