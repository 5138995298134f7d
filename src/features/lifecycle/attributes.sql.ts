// Changes a workflow's attributes.
import { type JSONObject, mergeJSON } from '../../kernel/sql/matching.js';
import { nowMs, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';

/** Merges the members into the attributes; null removes one. Returns whether the workflow exists. */
export function mergeAttributes(database: Database, workflowID: string, change: JSONObject): Promise<boolean> {
  return setAttributes(database, workflowID, sql`${mergeJSON({ name: 'attributes' }, change)}`);
}

/** Replaces all attributes; null removes them. Returns whether the workflow exists. */
export function replaceAttributes(
  database: Database,
  workflowID: string,
  attributes: JSONObject | null,
): Promise<boolean> {
  // Postgres infers JSON for a parameter assigned to a JSON column; SQLite stores the text.
  return setAttributes(database, workflowID, sql`${attributes && JSON.stringify(attributes)}`);
}

async function setAttributes(database: Database, workflowID: string, value: Sql): Promise<boolean> {
  const changed = await database.run(sql`
    UPDATE ${table('workflow_status')}
    SET attributes = ${value}, updated_at = ${nowMs}
    WHERE workflow_uuid = ${workflowID}
    RETURNING workflow_uuid`);
  return changed.length > 0;
}
