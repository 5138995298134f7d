// Deletes workflows that retention is done with, and keeps where their archived copies are.
import { nowMs, oneOf, rows, type Sql, sql, table, type Token } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';
import { hasEnded } from '../../run/rows/states.js';
import { deletePayloads } from '../lifecycle/deletion.sql.js';
import { isNeeded } from './retention.sql.js';

/** A workflow as it was read. */
export interface SeenWorkflow {
  readonly workflowID: string;
  readonly updatedAt: number;
}

const workflows = table('workflow_status');
const archived = table('archived_workflows');
const SEEN = [
  { name: 'seen_id', type: 'text' },
  { name: 'seen_at', type: 'bigint' },
] as const;

const isDeletable = sql`${hasEnded()} AND NOT ${isNeeded}`;

function rowsOf(seen: readonly SeenWorkflow[]): Token {
  const data = seen.map(({ workflowID, updatedAt }) => [workflowID, updatedAt]);
  return rows('r', SEEN, data);
}

/** The workflows that have not changed since they were seen, and that nothing needs any more. */
export async function findDeletable(database: Database, seen: readonly SeenWorkflow[]): Promise<SeenWorkflow[]> {
  const found = await database.read(sql`
    SELECT workflow_uuid
    FROM ${rowsOf(seen)}
    JOIN ${workflows} ON workflow_uuid = r.seen_id AND updated_at = r.seen_at
    WHERE ${isDeletable}`);
  const ids = new Set(found.map((row) => row['workflow_uuid']));
  return seen.filter(({ workflowID }) => ids.has(workflowID));
}

/** The same, deleted. Postgres would compare each with each if the rows were in a subquery; SQLite has no USING. */
function deleteDeletable({ dialect }: Database, seen: readonly SeenWorkflow[]): Sql {
  if (dialect.name === 'postgres') {
    return sql`
      DELETE FROM ${workflows}
      USING ${rowsOf(seen)}
      WHERE workflow_uuid = r.seen_id AND updated_at = r.seen_at AND ${isDeletable}
      RETURNING workflow_uuid`;
  }
  return sql`
    DELETE FROM ${workflows}
    WHERE (workflow_uuid, updated_at) IN (SELECT r.seen_id, r.seen_at FROM ${rowsOf(seen)}) AND ${isDeletable}
    RETURNING workflow_uuid`;
}

/**
 * Deletes them with all their data, and notes the object that holds their copies, in one commit. Returns their IDs. What
 * another process has deleted meanwhile is in the object that it has noted itself, so that note stays.
 */
export async function deleteUnchanged(
  database: Database,
  seen: readonly SeenWorkflow[],
  objectName: string | undefined,
): Promise<string[]> {
  return database.transaction(async (tx) => {
    const deleted = (await tx.run(deleteDeletable(database, seen))).map((row) => row['workflow_uuid'] as string);
    if (deleted.length === 0) return deleted;
    const notes = objectName === undefined ? [] : noteArchived(deleted, objectName);
    for (const statement of [...notes, ...deletePayloads(tx, deleted)]) await tx.run(statement);
    return deleted;
  });
}

/** An older row, of a workflow that was restored, is deleted before: it may be in another partition than the new one. */
function noteArchived(workflowIDs: readonly string[], objectName: string): Sql[] {
  const columns = [
    { name: 'workflow_uuid', type: 'text' },
    { name: 'object_name', type: 'text' },
  ] as const;
  const forget = sql`DELETE FROM ${archived} WHERE workflow_uuid ${oneOf(workflowIDs)}`;
  const note = sql`
    INSERT INTO ${archived} (workflow_uuid, object_name, archived_at)
    SELECT r.workflow_uuid, r.object_name, ${nowMs}
    FROM ${rows(
      'r',
      columns,
      workflowIDs.map((id) => [id, objectName]),
    )}`;
  return [forget, note];
}

/** The object that holds the latest copy of a workflow. */
export async function findArchived(database: Database, workflowID: string): Promise<string | undefined> {
  const [row] = await database.read(sql`
    SELECT a.object_name
    FROM ${archived} AS a
    WHERE a.workflow_uuid = ${workflowID}
    ORDER BY a.archived_at DESC
    LIMIT 1`);
  return row?.['object_name'] as string | undefined;
}

/** The workflows that are noted under another object than this one, by that object. */
export async function findNotedElsewhere(
  database: Database,
  workflowIDs: readonly string[],
  objectName: string,
): Promise<Map<string, string[]>> {
  const found = await database.read(sql`
    SELECT a.object_name, a.workflow_uuid
    FROM ${archived} AS a
    WHERE a.workflow_uuid ${oneOf(workflowIDs)} AND a.object_name <> ${objectName}`);
  const elsewhere = new Map<string, string[]>();
  for (const row of found) {
    const name = row['object_name'] as string;
    elsewhere.set(name, [...(elsewhere.get(name) ?? []), row['workflow_uuid'] as string]);
  }
  return elsewhere;
}

/** Notes another object for those that are still noted under the given one. Returns how many. */
export async function moveNotes(
  database: Database,
  workflowIDs: readonly string[],
  { from, to }: { readonly from: string; readonly to: string },
): Promise<number> {
  const moved = await database.run(sql`
    UPDATE ${archived}
    SET object_name = ${to}
    WHERE workflow_uuid ${oneOf(workflowIDs)} AND object_name = ${from}
    RETURNING workflow_uuid`);
  return moved.length;
}

/** What is deleted with workflows. */
export interface Holdings {
  /** Of inputs, outputs and errors, of workflows and steps: an estimate of the space they take. */
  readonly characters: number;
  /** Rows of the journal. */
  readonly events: number;
}

export async function measureHoldings(database: Database, workflowIDs: readonly string[]): Promise<Holdings> {
  const [row] = await database.read(sql`
    SELECT COALESCE((
      SELECT SUM(COALESCE(LENGTH(w.inputs), 0) + COALESCE(LENGTH(w.output), 0) + COALESCE(LENGTH(w.error), 0))
      FROM ${workflows} AS w
      WHERE w.workflow_uuid ${oneOf(workflowIDs)}), 0) + COALESCE((
      SELECT SUM(COALESCE(LENGTH(s.output), 0) + COALESCE(LENGTH(s.error), 0))
      FROM ${table('operation_outputs')} AS s
      WHERE s.workflow_uuid ${oneOf(workflowIDs)}), 0) AS characters,
      (SELECT COUNT(*) FROM ${table('journal')} AS j WHERE j.workflow_id ${oneOf(workflowIDs)}) AS events`);
  return { characters: Number(row?.['characters'] ?? 0), events: Number(row?.['events'] ?? 0) };
}
