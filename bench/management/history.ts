// A table with a long history for the figures of management: what has ended long ago, what failed, what waits.
import { sql, table } from '../../src/kernel/sql/sql.js';
import type { Database } from '../../src/database/database.js';

const INPUTS = `{"json":[{"order":"${'x'.repeat(60)}"}],"__dbos_serializer":"superjson"}`;
/** When the first workflow was created by default; the others follow, a second apart. */
export const HISTORY_BEGINS_AT = 1_700_000_000_000;
export const SECOND = 1000;

/**
 * Adds workflows up to the count. Half are of queue "mail", a third are of function "checkout". The first hundred are the
 * only ones of queue "old" and of function "archive" (ten of them), and wait; the last hundred run. One in a hundred has
 * failed.
 */
export async function addHistory(
  database: Database,
  count: number,
  { beginsAt = HISTORY_BEGINS_AT }: { readonly beginsAt?: number } = {},
): Promise<void> {
  const numbers =
    database.dialect.name === 'postgres'
      ? sql`generate_series(1, CAST(${count} AS INTEGER)) AS g(n)`
      : sql`(WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < ${count}) SELECT n FROM g) AS g`;
  await database.run(sql`
    INSERT INTO ${table('workflow_status')}
      (workflow_uuid, status, name, queue_name, inputs, output, serialization, executor_id, application_version,
       application_name, authenticated_user, recovery_attempts, created_at, updated_at, started_at_epoch_ms, completed_at)
    SELECT 'order-' || (g.n % 1000) || '-' || g.n,
      CASE WHEN g.n <= 50 THEN 'ENQUEUED' WHEN g.n <= 100 THEN 'DELAYED' WHEN g.n > ${count} - 100 THEN 'PENDING'
        WHEN g.n % 100 = 0 THEN 'ERROR' ELSE 'SUCCESS' END,
      CASE WHEN g.n <= 10 THEN 'archive' WHEN g.n % 3 = 0 THEN 'checkout' ELSE 'function-' || (g.n % 50) END,
      CASE WHEN g.n <= 100 THEN 'old' WHEN g.n % 2 = 0 THEN 'mail' END,
      ${INPUTS}, ${INPUTS}, 'js_superjson', 'vm-1', 'v1', 'bench', '', 1,
      ${beginsAt} + CAST(g.n AS BIGINT) * ${SECOND}, ${beginsAt} + CAST(g.n AS BIGINT) * ${SECOND},
      CASE WHEN g.n > 100 THEN ${beginsAt} + CAST(g.n AS BIGINT) * ${SECOND} + 100 END,
      CASE WHEN g.n > 100 AND g.n <= ${count} - 100 THEN ${beginsAt} + CAST(g.n AS BIGINT) * ${SECOND} + 500 END
    FROM ${numbers}`);
}
