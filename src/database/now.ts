// The database's clock.
import { nowMs, sql } from '../kernel/sql/sql.js';
import type { Database } from './database.js';

export async function readNow(database: Database): Promise<{ readonly now: number }> {
  const [row] = await database.read(sql`SELECT ${nowMs} AS now`);
  return { now: Number(row?.['now']) };
}
