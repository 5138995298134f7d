// Giving the rows of one application to another. What runs or is served is moved in one commit, so that no process sees
// half of it. What has ended, and checkpoints, may be many: they are moved in ranges of their keys.
import { sql, type Sql, table } from '../../sql/sql.js';
import type { Database, Executor } from '../database.js';
import { isActive } from '../runs/states.js';

/** Whose rows are moved, and to whom. */
export interface Renaming {
  /** Null moves none but those that nobody owns. */
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

/** Moves queues, schedules, versions, engines and the workflows that have not ended. */
export async function moveActive(tx: Executor, renaming: Renaming): Promise<ActiveCounts> {
  const count = async (name: string, condition?: Sql): Promise<number> =>
    (await tx.run(move(name, renaming, condition))).length;
  // An engine that is on the list, or was, keeps its workflows: they are recovered by the name that they have then.
  await count('executors');
  return {
    queues: await count('queues'),
    schedules: await count('workflow_schedules'),
    versions: await count('application_versions'),
    workflows: await count('workflow_status', sql`AND ${isActive()}`),
  };
}

/** Moves all that is left in a table. */
export async function moveAll(tx: Executor, name: MovedTable, renaming: Renaming): Promise<number> {
  return (await tx.run(move(name, renaming))).length;
}

export type MovedTable = 'workflow_status' | 'operation_outputs';

/**
 * Moves what is left in the next range of workflow IDs, which has at least `size` rows unless it is the last one. Tells how
 * many were moved, and where the next range begins; undefined when there is none.
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
