// The engines that are or were running, one row a launch. A row stays until the work of its engine has been taken over.
import { nowMs, sql, table } from '../../sql/sql.js';
import { TableColumns } from '../columns.js';
import type { Database } from '../database.js';
import { INTERNAL_QUEUE } from '../runs/lifecycle.js';

/** One launch of an engine. */
export interface Incarnation {
  readonly incarnationID: string;
  readonly executorID: string;
  readonly applicationName: string;
  readonly applicationVersion: string;
  readonly host: string;
  readonly pid: number;
  /** Tells a process from a later one with the same number, where the system offers such a thing. */
  readonly metadata: string | null;
}

/** What an engine does for others, as it says of itself. */
export interface Services {
  /** The only queues that it serves; null if it serves all that are registered. */
  readonly listenQueues: readonly string[] | null;
  /** The queues that it has defined in memory. */
  readonly memoryQueues: readonly string[];
  /** Names of its workflows, as `class.name`. */
  readonly functions: readonly string[];
  /** Its configured instances, as `class/instance`. */
  readonly instances: readonly string[];
}

/** Undefined for an engine that says nothing of it. */
export function servicesOf({ metadata }: Pick<Incarnation, 'metadata'>): Services | undefined {
  return metadata === null ? undefined : (JSON.parse(metadata) as { services?: Services }).services;
}

/** Whether an engine takes workflows from a queue. `isStored` tells that the queue is kept in the database. */
export function doesServe(engine: Pick<Incarnation, 'metadata'>, queueName: string, isStored: boolean): boolean {
  const services = servicesOf(engine);
  if (!services || queueName === INTERNAL_QUEUE) return true;
  const { listenQueues, memoryQueues } = services;
  return (isStored || memoryQueues.includes(queueName)) && (listenQueues === null || listenQueues.includes(queueName));
}

/** Another engine, as seen by the database's clock. */
export interface Peer extends Incarnation {
  readonly isLeaseOver: boolean;
}

const executors = table('executors');

const columns = new TableColumns<Incarnation>([
  ['incarnationID', 'incarnation_id', 'text'],
  ['executorID', 'executor_id', 'text'],
  ['applicationName', 'application_name', 'text'],
  ['applicationVersion', 'application_version', 'text'],
  ['host', 'host', 'text'],
  ['pid', 'pid', 'int'],
  ['metadata', 'metadata', 'text'],
]);
const selected = columns.select('e');

export async function insertIncarnation(database: Database, incarnation: Incarnation, leaseMs: number): Promise<void> {
  const [id, executorID, applicationName, version, host, pid, metadata] = columns.toValues(incarnation);
  await database.run(sql`
    INSERT INTO ${executors} (${columns.names}, started_at, heartbeat_at, lease_until_epoch_ms)
    VALUES (${id}, ${executorID}, ${applicationName}, ${version}, ${host}, ${pid}, ${metadata},
      ${nowMs}, ${nowMs}, ${nowMs} + ${leaseMs})
    ON CONFLICT DO NOTHING`);
}

/** Prolongs the lease. False when the row is gone: others have taken this engine for dead. */
export async function renewLease(database: Database, incarnationID: string, leaseMs: number): Promise<boolean> {
  const prolonged = await database.run(sql`
    UPDATE ${executors}
    SET heartbeat_at = ${nowMs}, lease_until_epoch_ms = ${nowMs} + ${leaseMs}
    WHERE incarnation_id = ${incarnationID}
    RETURNING incarnation_id`);
  return prolonged.length > 0;
}

/** All engines but this one; all, if none is named. */
export async function listPeers(database: Database, incarnationID = ''): Promise<Peer[]> {
  const found = await database.read(sql`
    SELECT ${selected}, CASE WHEN e.lease_until_epoch_ms < ${nowMs} THEN 1 ELSE 0 END AS is_over
    FROM ${executors} AS e
    WHERE e.incarnation_id <> ${incarnationID}
    ORDER BY e.incarnation_id`);
  return found.map((row) => ({ ...columns.toRecord(row), isLeaseOver: row['is_over'] === 1 }));
}

/** Another engine, with its times. */
export interface ExecutorRecord extends Peer {
  readonly startedAt: number;
  readonly heartbeatAt: number;
  readonly leaseUntil: number;
}

/** All engines with their times, in the order in which they were launched. */
export async function listExecutors(database: Database): Promise<ExecutorRecord[]> {
  const found = await database.read(sql`
    SELECT ${selected}, e.started_at, e.heartbeat_at, e.lease_until_epoch_ms,
      CASE WHEN e.lease_until_epoch_ms < ${nowMs} THEN 1 ELSE 0 END AS is_over
    FROM ${executors} AS e
    ORDER BY e.started_at, e.incarnation_id`);
  return found.map((row) => ({
    ...columns.toRecord(row),
    isLeaseOver: row['is_over'] === 1,
    startedAt: Number(row['started_at']),
    heartbeatAt: Number(row['heartbeat_at']),
    leaseUntil: Number(row['lease_until_epoch_ms']),
  }));
}

/** Takes an engine off the list; with `ifLeaseOver` only if its lease is over at this moment. */
export async function removeIncarnation(
  database: Database,
  incarnationID: string,
  { ifLeaseOver = false } = {},
): Promise<void> {
  const condition = ifLeaseOver ? sql`AND lease_until_epoch_ms < ${nowMs}` : sql``;
  await database.run(sql`DELETE FROM ${executors} WHERE incarnation_id = ${incarnationID} ${condition}`);
}
