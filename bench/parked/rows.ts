// Rows of parked workflows, as runs that have left leave them. Written by SQL: a million runs would take too long.
import { sql, table } from '../../src/kernel/sql/sql.js';
import type { Database } from '../../src/database/database.js';

const ROWS_MAX = 100_000;
const OWNER = 'bench.1';

export interface RowsToAdd {
  readonly prefix: string;
  readonly workflow: string;
  readonly count: number;
  readonly dueAt: number;
  /** How much later each is due than the one before. */
  readonly apartMs: number;
}

/** Parked sleepers. The argument of each is its number. */
export async function addSleepers(
  database: Database,
  { prefix, workflow, count, dueAt, apartMs }: RowsToAdd,
): Promise<void> {
  for (let first = 0; first < count; first += ROWS_MAX) {
    const last = Math.min(first + ROWS_MAX, count) - 1;
    await database.transaction(async (tx) => {
      await tx.run(sql`
        INSERT INTO ${table('workflow_status')}
          (workflow_uuid, status, name, inputs, serialization, executor_id, application_version, application_name,
           queue_name, owner_xid, creator_xid, recovery_attempts, delay_until_epoch_ms)
        SELECT ${prefix} || n, 'DELAYED', ${workflow}, '{"json":[' || n || '],"__dbos_serializer":"superjson"}', 'js_superjson',
          'local', 'v1', 'bench', '_dbos_internal_queue', ${OWNER}, ${prefix} || n, 0,
          CAST(${dueAt} AS BIGINT) + n * CAST(${apartMs} AS BIGINT)
        FROM generate_series(CAST(${first} AS INT), CAST(${last} AS INT)) AS n`);
      await tx.run(sql`
        INSERT INTO ${table('operation_outputs')} (workflow_uuid, function_id, function_name, output, serialization)
        SELECT ${prefix} || n, 0, 'DBOS.sleep', CAST(CAST(${dueAt} AS BIGINT) + n * CAST(${apartMs} AS BIGINT) AS TEXT), 'portable_json'
        FROM generate_series(CAST(${first} AS INT), CAST(${last} AS INT)) AS n`);
    });
  }
}

/** Turns sleepers into receivers of the topic "t". */
export async function makeReceivers(database: Database, prefix: string, count: number): Promise<void> {
  await database.run(sql`
    INSERT INTO ${table('parked_waits')} (wait_key, workflow_uuid, kind, awaited_uuid, awaited_name)
    SELECT 'message:' || ${prefix} || n || '::t', ${prefix} || n, 'message', ${prefix} || n, 't'
    FROM generate_series(0, CAST(${count - 1} AS INT)) AS n`);
  await database.run(sql`
    UPDATE ${table('operation_outputs')} SET function_id = 1
    WHERE workflow_uuid IN (SELECT ${prefix} || n FROM generate_series(0, CAST(${count - 1} AS INT)) AS n)`);
}
