// Work that is left to do, by application version and by executor. Both read partial indexes of active workflows, so their
// cost does not depend on how many have ended.
import { sql, table } from '../../kernel/sql/sql.js';
import type { Database } from '../../database/database.js';
import { seenStatus } from '../parking/parked.sql.js';
import { isInFlight } from '../../run/rows/states.js';

export interface OpenWork {
  readonly applicationName: string | null;
  /** Null for workflows that go to the latest version. */
  readonly applicationVersion: string | null;
  readonly enqueued: number;
  readonly delayed: number;
  /** Includes parked workflows. */
  readonly running: number;
}

const workflows = table('workflow_status');
const columns = sql`w.application_name, w.application_version, w.status`;

export async function countOpenWork(database: Database, applicationName: string | null): Promise<OpenWork[]> {
  const scope =
    applicationName === null ? sql`TRUE` : sql`(w.application_name = ${applicationName} OR w.application_name IS NULL)`;
  const found = await database.read(sql`
    SELECT a.application_name, a.application_version,
      SUM(CASE WHEN a.status = 'ENQUEUED' THEN 1 ELSE 0 END) AS enqueued,
      SUM(CASE WHEN a.status = 'DELAYED' THEN 1 ELSE 0 END) AS delayed,
      SUM(CASE WHEN a.status = 'PENDING' THEN 1 ELSE 0 END) AS running
    FROM (
      SELECT ${columns}
      FROM ${workflows} AS w
      WHERE ${isInFlight('w')} AND ${scope}
      UNION ALL
      SELECT w.application_name, w.application_version, ${seenStatus('w')} AS status
      FROM ${workflows} AS w
      WHERE w.status = 'DELAYED' AND ${scope}) AS a
    GROUP BY a.application_name, a.application_version`);
  return found.map((row) => ({
    applicationName: row['application_name'] as string | null,
    applicationVersion: row['application_version'] as string | null,
    enqueued: Number(row['enqueued']),
    delayed: Number(row['delayed']),
    running: Number(row['running']),
  }));
}

/** Running workflows by executor; of one queue, if it is given. */
export async function countRunning(database: Database, queueName?: string): Promise<Map<string, number>> {
  // Uses idx_workflow_status_running, or idx_workflow_status_in_flight_v2 for a queue.
  const ofQueue = queueName === undefined ? sql`` : sql`AND ${isInFlight('w')} AND w.queue_name = ${queueName}`;
  const found = await database.read(sql`
    SELECT w.executor_id, COUNT(*) AS running
    FROM ${workflows} AS w
    WHERE w.status = 'PENDING' ${ofQueue}
    GROUP BY w.executor_id`);
  return new Map(found.map((row) => [(row['executor_id'] as string | null) ?? '', Number(row['running'])]));
}
