// How the database means to carry a statement out.
import { type Sql, sql } from '../../src/kernel/sql/sql.js';
import type { Database } from '../../src/database/database.js';

export async function explain(database: Database, statement: Sql): Promise<string> {
  const prefix =
    database.dialect.name === 'postgres' ? sql`EXPLAIN ${statement}` : sql`EXPLAIN QUERY PLAN ${statement}`;
  const lines = await database.run(prefix);
  return lines.map((line) => String(line['QUERY PLAN'] ?? line['detail'])).join('\n');
}
