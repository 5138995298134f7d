// Deletes the rows of the journal of workflows that ended long ago, and leaves the workflows. What the other tables tell is
// derived from them again. Why a workflow was cancelled stays: its status shows it. Who deleted a workflow is forgotten when
// that is long ago.
import type { WorkflowStatusString } from '../../kernel/workflow/status.js';
import { oneOf, setting, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';
import { hasEnded } from '../../run/rows/states.js';
import { isOfEpoch, readEpochs } from './epochs.sql.js';

/** A row of the journal, in the order in which it grows. */
export interface JournalCursor {
  readonly epoch: number;
  /** The transaction that wrote it; always 0 on SQLite. */
  readonly xid: string;
  readonly seq: number;
}

export interface AgedRow extends JournalCursor {
  readonly workflowID: string;
  readonly at: number;
  readonly isDue: boolean;
  /** Of the workflow, if it exists. */
  readonly name: string | null;
  readonly status: WorkflowStatusString | null;
  readonly endedAt: number | null;
}

/** Before all rows. */
export const FIRST_ROW: JournalCursor = { epoch: 0, xid: '0', seq: -1 };

export interface PruneLimits {
  /** When a workflow must have ended. */
  readonly before: number;
  /** Only its workflows, and those of none. Null for all. */
  readonly applicationName: string | null;
}

const journal = table('journal');
const workflows = table('workflow_status');
/** Why a workflow was cancelled stays with it. A deletion is not of the workflow that has the ID now. */
export const KEPT = sql`('WorkflowCancelRequested', 'WorkflowTimedOut', 'WorkflowDeleted')`;
export const wasDeleted = sql`j.event_type = 'WorkflowDeleted'`;

/** True for a workflow `w`. */
export function isDue({ before, applicationName }: PruneLimits): Sql {
  const isOwn =
    applicationName === null ? sql`TRUE` : sql`(w.application_name = ${applicationName} OR w.application_name IS NULL)`;
  return sql`${hasEnded('w')} AND COALESCE(w.completed_at, w.updated_at) < ${before} AND ${isOwn}`;
}

/** The first rows after the cursor, old or not. Uses the key of the journal. */
export async function listRows(
  database: Database,
  after: JournalCursor,
  { limit, ...limits }: PruneLimits & { readonly limit: number },
): Promise<AgedRow[]> {
  const isPostgres = database.dialect.name === 'postgres';
  const isAfter = isPostgres
    ? sql`(j.xid, j.seq) > (CAST(CAST(${after.xid} AS TEXT) AS XID8), CAST(${after.seq} AS BIGINT))`
    : sql`j.seq > ${after.seq}`;
  const found = await readEpochs(database, { epoch: after.epoch, limit }, (left, isFirst) => {
    return sql`
    SELECT ${isPostgres ? sql`CAST(j.xid AS TEXT)` : sql`'0'`} AS xid_text, j.seq, j.workflow_id, j.at,
      CASE
        WHEN ${wasDeleted} AND j.at < ${limits.before} THEN 1
        WHEN j.event_type NOT IN ${KEPT} AND ${isDue(limits)} THEN 1
        ELSE 0 END AS is_due,
      w.name, w.status, COALESCE(w.completed_at, w.updated_at) AS ended_at
    FROM ${journal} AS j
    LEFT JOIN ${workflows} AS w ON w.workflow_uuid = j.workflow_id
    WHERE ${isFirst ? isAfter : sql`TRUE`} ${isPostgres ? sql`AND ${isOfEpoch}` : sql``}
    ORDER BY ${isPostgres ? sql`j.xid, j.seq` : sql`j.seq`}
    LIMIT ${left}`;
  });
  return found.map(({ epoch, row }) => ({
    epoch,
    xid: row['xid_text'] as string,
    seq: Number(row['seq']),
    workflowID: row['workflow_id'] as string,
    at: Number(row['at']),
    isDue: row['is_due'] === 1,
    name: row['name'] as string | null,
    status: row['status'] as WorkflowStatusString | null,
    endedAt: row['ended_at'] as number | null,
  }));
}

/** Deletes the rows of the workflows that are still due. Returns how many. */
export async function pruneJournal(
  database: Database,
  workflowIDs: readonly string[],
  limits: PruneLimits,
): Promise<number> {
  const [allow, forbid] = permission(database);
  const results = await database.commit([
    allow,
    sql`
      DELETE FROM ${journal} AS j
      WHERE j.workflow_id ${oneOf(workflowIDs)} AND ((${wasDeleted} AND j.at < ${limits.before})
        OR (j.event_type NOT IN ${KEPT} AND EXISTS (
          SELECT 1 FROM ${workflows} AS w WHERE w.workflow_uuid = j.workflow_id AND ${isDue(limits)})))
      RETURNING seq`,
    ...forbid,
  ]);
  return results[1]?.length ?? 0;
}

/** The guards of the journal let through what runs between these two. A setting ends with its transaction. */
function permission({ dialect }: Database): [Sql, Sql[]] {
  if (dialect.name === 'postgres') return [sql`SELECT ${setting('everstep.prune', 'on')}`, []];
  const notes = table('journal_notes');
  return [
    sql`INSERT INTO ${notes} (kind, note) VALUES ('prune', '{}') ON CONFLICT (kind) DO NOTHING`,
    [sql`DELETE FROM ${notes} WHERE kind = 'prune'`],
  ];
}
