// Workflows that a library has left in flight when an application moves from DBOS to Everstep, or back: running under an owner
// token of that library, or waiting for a version of it. Processes of DBOS have no lease, so only the operator knows whether
// they have ended.
import { lock, nowMs, oneOf, type Sql, sql, table } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';
import { isParked } from '../parking/parked.sql.js';
import { unparked } from '../../run/rows/lifecycle.js';
import { INTERNAL_QUEUE } from '../queue/queue.js';
import { holdsEngineToken } from '../../run/rows/owner-tokens.js';
import { isActive, unindexed } from '../../run/rows/states.js';

const workflows = table('workflow_status');

export interface AdoptionFilter {
  /** Whose workflows: those that DBOS has left, or those that Everstep has. */
  readonly leftBy: 'dbos' | 'everstep';
  /** The version that is to run them; null for the latest. */
  readonly toVersion: string | null;
  /** Only workflows that these executors ran or would have run. */
  readonly executorIDs?: readonly string[];
  readonly applicationVersions?: readonly string[];
  /** Only workflows of this application, and those of none. */
  readonly applicationName: string | null;
}

/** Workflows in flight of one executor and version. */
export interface AdoptableGroup {
  readonly executorID: string | null;
  readonly applicationName: string | null;
  readonly applicationVersion: string | null;
  readonly running: number;
  readonly waiting: number;
  /** When the oldest was created. */
  readonly oldestAt: number;
}

/** A workflow that was taken over. */
export interface Adopted {
  readonly workflowID: string;
  readonly status: 'ENQUEUED' | 'DELAYED';
  readonly queueName: string;
  readonly queuePartitionKey: string | null;
}

const isOurs = holdsEngineToken(sql`w.owner_xid`);
const isRunning = {
  dbos: sql`w.status = 'PENDING' AND (w.owner_xid IS NULL OR NOT ${isOurs})`,
  everstep: sql`w.status IN ('PENDING', 'DELAYED') AND ${isOurs}`,
};

const hasStarted = sql`(w.status = 'PENDING' OR ${isParked('w')})`;

/** Waiting for a version that no engine of ours has. */
function isWaiting(toVersion: string | null): Sql {
  return sql`
    w.status IN ('ENQUEUED', 'DELAYED') AND w.application_version IS NOT NULL
    AND w.application_version <> COALESCE(${toVersion}, '')
    AND NOT EXISTS (
      SELECT 1
      FROM ${table('executors')} AS e
      WHERE e.application_version = w.application_version AND e.lease_until_epoch_ms >= ${nowMs})`;
}

function isAdoptable(filter: AdoptionFilter): Sql {
  const { executorIDs, applicationVersions, applicationName, leftBy, toVersion } = filter;
  const conditions = [sql`${isActive('w')} AND ((${isRunning[leftBy]}) OR (${isWaiting(toVersion)}))`];
  if (executorIDs) conditions.push(sql`COALESCE(w.executor_id, '') ${oneOf(executorIDs)}`);
  if (applicationVersions) conditions.push(sql`COALESCE(w.application_version, '') ${oneOf(applicationVersions)}`);
  if (applicationName !== null) {
    conditions.push(sql`(w.application_name = ${applicationName} OR w.application_name IS NULL)`);
  }
  return conditions.reduce((all, one) => sql`${all} AND ${one}`);
}

/** What could be taken over, by executor and version. */
export async function countAdoptable(
  database: Database,
  filter: AdoptionFilter,
  timeoutMs: number,
): Promise<AdoptableGroup[]> {
  const found = await database.observe(
    sql`
      SELECT w.executor_id, w.application_name, w.application_version, MIN(w.created_at) AS oldest,
        SUM(CASE WHEN ${hasStarted} THEN 1 ELSE 0 END) AS running,
        SUM(CASE WHEN ${hasStarted} THEN 0 ELSE 1 END) AS waiting
      FROM ${workflows} AS w
      WHERE ${isAdoptable(filter)}
      GROUP BY w.executor_id, w.application_name, w.application_version
      ORDER BY oldest`,
    { timeoutMs, scans: 'all' },
  );
  return found.map((row) => ({
    executorID: row['executor_id'] as string | null,
    applicationName: row['application_name'] as string | null,
    applicationVersion: row['application_version'] as string | null,
    running: Number(row['running']),
    waiting: Number(row['waiting']),
    oldestAt: Number(row['oldest']),
  }));
}

/**
 * Takes over up to `limit` workflows: those that ran go back on their queues, and all get the version that is to run
 * them. A parked one ran: nothing that comes for it would wake it without its owner. A repetition finds nothing.
 */
export async function adoptIfLeft(database: Database, filter: AdoptionFilter, limit: number): Promise<Adopted[]> {
  const adopted = await database.run(sql`
    WITH picked AS MATERIALIZED (
      SELECT w.workflow_uuid AS id
      FROM ${workflows} AS w
      WHERE ${isAdoptable(filter)}
      LIMIT ${limit}
      ${lock('skip', 'w')}
    )
    UPDATE ${workflows}
    SET status = CASE WHEN status = 'DELAYED' AND NOT ${isParked()} THEN 'DELAYED' ELSE 'ENQUEUED' END, owner_xid = NULL,
      ${unparked},
      application_version = ${filter.toVersion}, queue_name = COALESCE(queue_name, ${INTERNAL_QUEUE}),
      started_at_epoch_ms = CASE WHEN rate_limited = TRUE THEN started_at_epoch_ms END, updated_at = ${nowMs}
    FROM picked
    WHERE workflow_uuid = picked.id AND ${unindexed(isActive())}
    RETURNING workflow_uuid, status, queue_name, queue_partition_key`);
  return adopted.map((row) => ({
    workflowID: row['workflow_uuid'] as string,
    status: row['status'] as Adopted['status'],
    queueName: row['queue_name'] as string,
    queuePartitionKey: row['queue_partition_key'] as string | null,
  }));
}
