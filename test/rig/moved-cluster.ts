// Makes of a database one that was moved here from another cluster, whose transactions have higher numbers.
import { table, sql } from '../../src/kernel/sql/sql.js';
import type { Database } from '../../src/database/database.js';

/** How far the other cluster is ahead. */
export const AHEAD = 1_000_000_000;

/** Raises the numbers of all rows of the journal. */
export async function pretendMove(database: Database): Promise<void> {
  await database.exclusive(async (connection) => {
    await connection.script('SET session_replication_role = replica');
    await connection.run(sql`
      UPDATE ${table('journal')} SET xid = CAST(CAST(CAST(CAST(xid AS TEXT) AS BIGINT) + ${AHEAD} AS TEXT) AS XID8)`);
    await connection.script('RESET session_replication_role');
  });
  await database.run(sql`UPDATE ${table('journal_epochs')} SET cluster = 'another'`);
}
