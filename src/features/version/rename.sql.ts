// Moves an application's rows to another name. Active rows move in one commit, so that no process sees half of them. Ended
// workflows and checkpoints may be many: they move in ranges of keys.
import { sql, type Sql, table } from '../../kernel/sql/sql.js';
import type { Database, Executor } from '../../database/database.js';
import { isActive } from '../../run/rows/states.js';

export interface Renaming {
  /** Null moves only rows without an application. */
  readonly oldName: string | null;
  readonly newName: string;
  readonly withUnclaimed: boolean;
}

export interface ActiveCounts {
  readonly queues: number;
  readonly schedules: number;
  readonly versions: number;
  readonly workflows: number;
}

function isMoved({ oldName, withUnclaimed }: Renaming): Sql {
  const isOld = oldName === null ? sql`FALSE` : sql`application_name = ${oldName}`;
  return withUnclaimed ? sql`(${isOld} OR application_name IS NULL)` : isOld;
}

function move(name: string, renaming: Renaming, condition: Sql = sql``): Sql {
  return sql`
    UPDATE ${table(name)} SET application_name = ${renaming.newName}
    WHERE ${isMoved(renaming)} ${condition}
    RETURNING 1 AS moved`;
}

/** Moves queues, schedules, versions, engines and active workflows. */
export async function moveActive(tx: Executor, renaming: Renaming): Promise<ActiveCounts> {
  const count = async (name: string, condition?: Sql): Promise<number> =>
    (await tx.run(move(name, renaming, condition))).length;
  // Engines move too: their workflows are recovered by the name they have by then.
  await count('executors');
  return {
    queues: await count('queues'),
    schedules: await count('workflow_schedules'),
    versions: await count('application_versions'),
    workflows: await count('workflow_status', sql`AND ${isActive()}`),
  };
}

/** Moves all remaining rows of a table. */
export async function moveAll(tx: Executor, name: MovedTable, renaming: Renaming): Promise<number> {
  return (await tx.run(move(name, renaming))).length;
}

export type MovedTable = 'workflow_status' | 'operation_outputs';

/**
 * Moves the next range of workflow IDs, with at least `size` rows unless it is the last. Returns how many rows were moved
 * and where the next range starts; undefined if there is none.
 */
export async function moveRange(
  database: Database,
  name: MovedTable,
  { renaming, after, size }: { readonly renaming: Renaming; readonly after: string; readonly size: number },
): Promise<{ readonly moved: number; readonly next: string | undefined }> {
  const [row] = await database.read(sql`
    SELECT k.workflow_uuid
    FROM ${table(name)} AS k
    WHERE k.workflow_uuid > ${after}
    ORDER BY k.workflow_uuid
    LIMIT 1 OFFSET ${size - 1}`);
  const next = row?.['workflow_uuid'] as string | undefined;
  const until = next === undefined ? sql`` : sql`AND workflow_uuid <= ${next}`;
  const moved = await database.run(move(name, renaming, sql`AND workflow_uuid > ${after} ${until}`));
  return { moved: moved.length, next };
}
