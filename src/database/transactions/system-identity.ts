// The identity of a system database. Completion records carry it: engines of several system databases may share one
// application database, and each may only delete records of its own workflows.
import { sql, table } from '../../kernel/sql/sql.js';
import type { Reader } from '../database.js';

/** 32 hexadecimal digits. */
export async function readSystemID(database: Reader): Promise<string> {
  const [row] = await database.read(sql`SELECT s.id FROM ${table('system_identity')} AS s`);
  return row?.['id'] as string;
}
