// Which engine owns a running workflow. An owner token starts with the ID of the engine's incarnation and a dot, so the
// tokens of an engine are a range. They are compared byte by byte: some collations ignore the dot.
import { bytewise, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';

const workflows = table('workflow_status');
const executors = table('executors');

/** Whether an engine of ours wrote the token. Those of other libraries have no dot. */
export function isEngineToken(owner: string | null): owner is string {
  return owner !== null && owner.includes('.');
}

/**
 * The token of a workflow whose run has diverged from its history. The engine of the run still owns it, and nothing runs it. A
 * counter has no leading zero, so this is no other run's token.
 */
export function divergedToken(owner: string): string {
  return owner.replace('.', '.0');
}

export function isDivergedToken(owner: string | null): boolean {
  return owner !== null && owner.includes('.0');
}

/** The same for a column. */
export function holdsDivergedToken(column: Sql): Sql {
  return sql`${column} LIKE '%.0%'`;
}

/** Whether a column holds a token of an engine of ours. */
export function holdsEngineToken(column: Sql): Sql {
  return sql`${column} LIKE '%.%'`;
}

/** Running workflows of engines of ours: rows of idx_workflow_status_running. */
export const isOwnedByEngine = sql`status = 'PENDING' AND ${holdsEngineToken(sql`owner_xid`)}`;
const ownerBytes = bytewise('owner_xid');

/** Owned by this incarnation. Uses idx_workflow_status_running. */
export function isOwnedBy(incarnationID: string): Sql {
  return sql`${isOwnedByEngine} AND ${ownerBytes} >= ${`${incarnationID}.`} AND ${ownerBytes} < ${`${incarnationID}/`}`;
}

/** Owned with this very token. Uses idx_workflow_status_running. */
export function isOwnedWith(owner: string): Sql {
  return sql`${isOwnedByEngine} AND ${ownerBytes} = ${owner}`;
}

/** Not owned by this incarnation, but by another or by another library. */
export function isNotOwnedBy(incarnationID: string): Sql {
  return sql`(owner_xid IS NULL OR ${ownerBytes} < ${`${incarnationID}.`} OR ${ownerBytes} >= ${`${incarnationID}/`})`;
}

/** The engine is not registered. */
export function isUnlisted(incarnationID: string): Sql {
  return sql`NOT EXISTS (SELECT 1 FROM ${executors} AS e WHERE e.incarnation_id = ${incarnationID})`;
}

/** Removes an engine; with the end of its lease only if it still has that, and was not renewed. */
export function removal(incarnationID: string, leaseUntil?: number): Sql {
  // No engine has written a time that is not a safe integer, and none will renew it.
  const condition = Number.isSafeInteger(leaseUntil) ? sql`AND lease_until_epoch_ms = ${leaseUntil}` : sql``;
  return sql`DELETE FROM ${executors} WHERE incarnation_id = ${incarnationID} ${condition} RETURNING incarnation_id`;
}

/** What a token consists of after the dot. */
const COUNTER_DIGITS = '0123456789abcdefghijklmnopqrstuvwxyz';
/** Sorts behind all of them. */
const AFTER_DIGITS = '~';

const firstFrom = (bound: Sql): Sql => sql`(
  SELECT RTRIM(owner_xid, ${COUNTER_DIGITS})
  FROM ${workflows}
  WHERE ${isOwnedByEngine} AND ${ownerBytes} >= ${bound}
  ORDER BY ${ownerBytes}
  LIMIT 1)`;

/**
 * The owners of running workflows. Walks idx_workflow_status_running from prefix to prefix, so it costs nothing per workflow.
 */
export const withOwners = sql`
  WITH RECURSIVE owners(prefix) AS (
    SELECT ${firstFrom(sql`''`)}
    UNION ALL
    SELECT ${firstFrom(sql`owners.prefix || ${AFTER_DIGITS}`)} FROM owners WHERE owners.prefix IS NOT NULL
  )`;
/** The incarnation of such an owner, if it is one of ours. */
export const ownerID = sql`RTRIM(owners.prefix, '.')`;
export const isOwnerID = sql`owners.prefix LIKE '%.'`;

/**
 * The incarnations that own workflows but are not registered: an engine that was declared dead may have claimed new work and
 * died before it registered again.
 */
export async function findUnlisted(database: Database): Promise<string[]> {
  const found = await database.read(sql`
    ${withOwners}
    SELECT ${ownerID} AS id
    FROM owners
    WHERE ${isOwnerID} AND NOT EXISTS (SELECT 1 FROM ${executors} AS e WHERE e.incarnation_id = ${ownerID})`);
  return found.map((row) => row['id'] as string);
}
