// The attributes of a workflow, changed in place.
import { type JSONObject, mergeJSON } from '../../sql/matching.js';
import { nowMs, type Sql, sql, table } from '../../sql/sql.js';
import type { Database } from '../database.js';

/** Puts the members in place of those of the same name; null takes one out. Says whether the workflow is there. */
export function mergeAttributes(database: Database, workflowID: string, change: JSONObject): Promise<boolean> {
  return setAttributes(database, workflowID, sql`${mergeJSON({ name: 'attributes' }, change)}`);
}

/** Puts the attributes in place of all others; null leaves the workflow without any. */
export function replaceAttributes(
  database: Database,
  workflowID: string,
  attributes: JSONObject | null,
): Promise<boolean> {
  // Postgres takes a parameter that is assigned to a JSON column for JSON; SQLite stores the text.
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
