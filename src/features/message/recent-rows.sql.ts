// Which rows other processes have added to a SQLite file since the last look. A process with many waiters asks for these
// instead of looking up all that it waits for, each time that a busy neighbour commits. Like a notification, an answer is a
// hint: a row that reuses the ID of a deleted one may be missed, and is found by the next poll.
import { nowMs, sql, type Sql, table } from '../../kernel/sql/sql.js';
import type { Database, Row } from '../../database/database.js';
import { eventKey } from './events.sql.js';
import { messageKey } from './messages.sql.js';

/** The keys of new rows, or undefined if there are too many to tell, or it is not known since when. */
export type RecentKeys = () => Promise<readonly string[] | undefined>;

export interface RecentRows {
  readonly messages: RecentKeys;
  readonly events: RecentKeys;
  readonly streams: RecentKeys;
  /** IDs of workflows that have ended. */
  readonly ended: RecentKeys;
}

const ROWS_MAX = 1000;
/** How long a commit may take. */
const COMMIT_MS = 1000;

/** Undefined for Postgres, where notifications have keys. */
export function recentRowsOf(database: Database): RecentRows | undefined {
  if (database.dialect.name !== 'sqlite') return undefined;
  const ofKey = (row: Row): string =>
    eventKey({ workflowID: row['workflow_uuid'] as string, key: row['key'] as string });
  return {
    messages: recent(database, {
      last: sql`SELECT MAX(m.rowid) AS last FROM ${table('notifications')} AS m`,
      since: (id) => sql`
        SELECT m.destination_uuid, m.topic FROM ${table('notifications')} AS m WHERE m.rowid >= ${id} LIMIT ${ROWS_MAX}`,
      keyOf: (row) => messageKey({ workflowID: row['destination_uuid'] as string, topic: row['topic'] as string }),
    }),
    events: recent(database, {
      last: sql`SELECT MAX(e.rowid) AS last FROM ${table('workflow_events')} AS e`,
      since: (id) => sql`
        SELECT e.workflow_uuid, e.key FROM ${table('workflow_events')} AS e WHERE e.rowid >= ${id} LIMIT ${ROWS_MAX}`,
      keyOf: ofKey,
    }),
    streams: recent(database, {
      last: sql`SELECT MAX(s.rowid) AS last FROM ${table('streams')} AS s`,
      since: (id) => sql`
        SELECT s.workflow_uuid, s.key FROM ${table('streams')} AS s WHERE s.rowid >= ${id} LIMIT ${ROWS_MAX}`,
      keyOf: ofKey,
    }),
    // Rides idx_workflow_status_completed_at.
    ended: recent(database, {
      last: sql`SELECT ${nowMs} AS last`,
      since: (time) => sql`
        SELECT w.workflow_uuid
        FROM ${table('workflow_status')} AS w
        WHERE w.completed_at >= ${time - COMMIT_MS}
        LIMIT ${ROWS_MAX}`,
      keyOf: (row) => row['workflow_uuid'] as string,
    }),
  };
}

interface Source {
  /** The mark that the next look begins at. It does not fall, unless rows are deleted. */
  readonly last: Sql;
  /** From the mark on, with the row at it: its ID may be used again. */
  readonly since: (mark: number) => Sql;
  readonly keyOf: (row: Row) => string;
}

function recent(database: Database, { last, since, keyOf }: Source): RecentKeys {
  let mark: number | undefined;
  return async () => {
    const before = mark;
    // Unknown until this look has succeeded: the next one must not begin after rows that a failed one has not seen.
    mark = undefined;
    const now = Number((await database.read(last))[0]?.['last'] ?? 0);
    const rows = before === undefined || now < before ? undefined : await database.read(since(before));
    mark = now;
    return rows && rows.length < ROWS_MAX ? rows.map(keyOf) : undefined;
  };
}
