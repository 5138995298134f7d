// Whether programs other than Everstep use the system database, and whether triggers notify of what they write. Postgres only.
import { sql } from '../../kernel/sql/sql.js';
import type { Database } from '../database.js';

/** What one look finds. */
export interface OtherPrograms {
  /** Whether triggers notify of what they write. */
  readonly hasTriggers: boolean;
  /** Whether any of them is connected. Any role may see the names under which sessions have connected. */
  readonly areConnected: boolean;
}

export async function findOtherPrograms(database: Database): Promise<OtherPrograms> {
  const [row] = await database.read(sql`
    SELECT
      EXISTS (
        SELECT 1
        FROM pg_catalog.pg_trigger AS t
        WHERE t.tgrelid = to_regclass(${database.dialect.table('workflow_status')})
          AND t.tgname = 'everstep_workflow_updated' AND t.tgenabled <> 'D'
      ) AS has_triggers,
      EXISTS (
        SELECT 1
        FROM pg_catalog.pg_stat_activity AS a
        WHERE a.datname = current_database()
          AND (a.backend_type IS NULL OR a.backend_type = 'client backend')
          AND a.application_name NOT LIKE 'everstep%' AND a.application_name <> current_setting('application_name')
      ) AS are_connected`);
  return { hasTriggers: row?.['has_triggers'] === true, areConnected: row?.['are_connected'] === true };
}
