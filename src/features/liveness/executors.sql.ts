// Registered engines, one row per launch. A row stays until another engine has taken over its work.
import { array, isRecord, nullable, string } from '../../kernel/check/validation.js';
import { nowMs, type Sql, sql, table } from '../../kernel/sql/sql.js';
import { TableColumns } from '../../database/columns.js';
import type { Database, Row } from '../../database/database.js';
import { INTERNAL_QUEUE } from '../queue/queue.js';
import { isOwnerID, ownerID, removal, withOwners } from '../../run/rows/owner-tokens.js';

/** One launch of an engine. */
export interface Incarnation {
  readonly incarnationID: string;
  readonly executorID: string;
  readonly applicationName: string;
  readonly applicationVersion: string;
  readonly host: string;
  readonly pid: number;
  /** JSON: the traits of the process (see `presence.ts`) and the services. */
  readonly metadata: string | null;
}

/** What an engine serves, according to itself. */
export interface Services {
  /** The only queues that it serves; null for all. */
  readonly listenQueues: readonly string[] | null;
  /** Its in-memory queues. */
  readonly memoryQueues: readonly string[];
  /** Its workflows, as `class.name`. */
  readonly functions: readonly string[];
  /** Its configured instances, as `class/instance`. */
  readonly instances: readonly string[];
  /** The formats in which it can read a workflow. Undefined if it does not say so. */
  readonly formats?: readonly string[] | undefined;
  /** Whether it applies a retention policy. */
  readonly retention: boolean;
}

const names = array(string());
const namesOrNull = nullable(names);

/** What an engine says about itself. Empty for one that says nothing, or nothing readable: others may write the row. */
export function metadataOf({ metadata }: Pick<Incarnation, 'metadata'>): Readonly<Record<string, unknown>> {
  if (metadata === null) return {};
  try {
    const value: unknown = JSON.parse(metadata);
    return isRecord(value) ? value : {};
  } catch {
    // Not JSON.
    return {};
  }
}

/** Undefined for an engine that does not report them. */
export function servicesOf(engine: Pick<Incarnation, 'metadata'>): Services | undefined {
  const { services } = metadataOf(engine);
  if (!isRecord(services)) return undefined;
  const { listenQueues, memoryQueues, functions, instances = [], formats, retention = false } = services;
  const isReadable =
    namesOrNull.accepts(listenQueues) &&
    names.accepts(memoryQueues) &&
    names.accepts(functions) &&
    names.accepts(instances) &&
    (formats === undefined || names.accepts(formats)) &&
    typeof retention === 'boolean';
  return isReadable ? { listenQueues, memoryQueues, functions, instances, formats, retention } : undefined;
}

/** Whether an engine claims from a queue. `isStored`: the queue is in the database. */
export function doesServe(engine: Pick<Incarnation, 'metadata'>, queueName: string, isStored: boolean): boolean {
  const services = servicesOf(engine);
  if (!services || queueName === INTERNAL_QUEUE) return true;
  const { listenQueues, memoryQueues } = services;
  return (isStored || memoryQueues.includes(queueName)) && (listenQueues === null || listenQueues.includes(queueName));
}

/** Another engine, by the database clock. */
export interface Peer extends Incarnation {
  readonly isLeaseOver: boolean;
  /** How much of its lease was left; negative if it has expired. */
  readonly leaseLeftMs: number;
  readonly leaseUntil: number;
  /** Whether it should have been renewed before. */
  readonly isLate: boolean;
  /** How long it is from a renewal on. */
  readonly leaseMs: number;
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

export async function insertIncarnation(
  database: Database,
  incarnation: Incarnation,
  { leaseMs, afterCommit }: { readonly leaseMs: number; readonly afterCommit?: Sql },
): Promise<void> {
  const [id, executorID, applicationName, version, host, pid, metadata] = columns.toValues(incarnation);
  const insertion = sql`
    INSERT INTO ${executors} (${columns.names}, started_at, heartbeat_at, lease_until_epoch_ms)
    VALUES (${id}, ${executorID}, ${applicationName}, ${version}, ${host}, ${pid}, ${metadata},
      ${nowMs}, ${nowMs}, ${nowMs} + ${leaseMs})
    ON CONFLICT DO NOTHING`;
  await database.commit([insertion], { afterCommit });
}

/** Whether the lease was renewed, and when. If the row is gone, another engine declared this one dead. */
export interface Renewal {
  readonly isRenewed: boolean;
  /** Whether it was later than usual, by the database's clock. */
  readonly wasLate?: boolean;
  /** By the database's clock. */
  readonly now?: number;
  /** Whether the lock that was looked at is free. */
  readonly isLockFree?: boolean;
  /** How long until the first lease of a peer ends. */
  readonly peersLeftMs?: number;
}

/**
 * The part of a lease that is left when it is renewed in time. Leases are renewed after a third of their length, give or take
 * a tenth of that: with one renewal missed, less than this is left.
 */
const IN_TIME = 0.45;

export interface LeaseTerms {
  readonly leaseMs: number;
  /** An advisory lock to look at in the same statement. Postgres only. */
  readonly lockKey?: string | undefined;
}

/** A copy that is executed late only prolongs a lease, and not that of an engine that was declared dead. */
export async function renewLease(database: Database, incarnationID: string, terms: LeaseTerms): Promise<Renewal> {
  const { leaseMs, lockKey } = terms;
  const isFree = lockKey === undefined ? sql`FALSE` : sql`pg_try_advisory_xact_lock_shared(CAST(${lockKey} AS BIGINT))`;
  const inTime = sql`
      AND lease_until_epoch_ms >= ${nowMs} + ${Math.round(leaseMs * IN_TIME)} AND heartbeat_at <= ${nowMs} + ${leaseMs}`;
  // Table scans are ruled out, so the subquery has to search an index: hence the IDs after ''.
  const renew = (condition: Sql): Sql => sql`
    UPDATE ${executors}
    SET heartbeat_at = ${nowMs}, lease_until_epoch_ms = ${nowMs} + ${leaseMs}
    WHERE incarnation_id = ${incarnationID} ${condition}
    RETURNING heartbeat_at, ${isFree} AS is_free, (
      SELECT MIN(CAST(p.lease_until_epoch_ms AS BIGINT))
      FROM ${executors} AS p
      WHERE p.incarnation_id > '' AND p.incarnation_id <> ${incarnationID}) AS first_end`;
  const send = async (condition: Sql): Promise<Row | undefined> =>
    (await database.commit([renew(condition)], { mayBeLate: true }))[0]?.[0];
  const renewedInTime = await send(inTime);
  const renewed = renewedInTime ?? (await send(sql``));
  if (!renewed) return { isRenewed: false };
  const now = Number(renewed['heartbeat_at']);
  const firstEnd = renewed['first_end'];
  const peersLeftMs = firstEnd === null ? Infinity : Number(firstEnd) - now;
  return { isRenewed: true, wasLate: !renewedInTime, now, isLockFree: renewed['is_free'] === true, peersLeftMs };
}

/** All other engines; all engines if no ID is given. */
export async function listPeers(database: Database, incarnationID = ''): Promise<Peer[]> {
  const found = await database.read(sql`
    SELECT ${selected}, e.heartbeat_at, e.lease_until_epoch_ms, ${nowMs} AS now
    FROM ${executors} AS e
    WHERE e.incarnation_id <> ${incarnationID}
    ORDER BY e.incarnation_id`);
  return found.map(toPeer);
}

function toPeer(row: Row): Peer {
  // Subtracted here: the server fails on a difference that is out of range.
  const leaseUntil = Number(row['lease_until_epoch_ms']);
  const heartbeatAt = Number(row['heartbeat_at']);
  // A damaged lease has no length, so it is over. An engine that is alive nevertheless registers again.
  const isLease = Number.isSafeInteger(leaseUntil) && Number.isSafeInteger(heartbeatAt);
  const leaseMs = isLease ? leaseUntil - heartbeatAt : 0;
  const leaseLeftMs = (leaseUntil || 0) - Number(row['now']);
  // An engine that died before the clock was set back would seem alive until the clock is there again.
  const isLeaseOver = leaseLeftMs < 0 || leaseLeftMs > 2 * leaseMs;
  const isLate = isLeaseOver || leaseLeftMs < leaseMs * IN_TIME;
  return { ...columns.toRecord(row), isLeaseOver, isLate, leaseLeftMs, leaseUntil, leaseMs };
}

/** All engines, and the incarnations that own workflows but are not registered. */
export async function surveyEngines(
  database: Database,
): Promise<{ readonly peers: readonly Peer[]; readonly unlisted: readonly string[] }> {
  const found = await database.read(sql`
    ${withOwners}
    SELECT i.id, ${selected}, e.heartbeat_at, e.lease_until_epoch_ms, ${nowMs} AS now
    FROM (SELECT x.incarnation_id AS id FROM ${executors} AS x UNION SELECT ${ownerID} FROM owners WHERE ${isOwnerID}) AS i
    LEFT JOIN ${executors} AS e ON e.incarnation_id = i.id
    ORDER BY i.id`);
  const isListed = (row: Row): boolean => row['incarnation_id'] !== null;
  return {
    peers: found.filter(isListed).map(toPeer),
    unlisted: found.filter((row) => !isListed(row)).map((row) => row['id'] as string),
  };
}

/** An engine with its times. */
export interface ExecutorRecord extends Omit<Peer, 'leaseLeftMs' | 'leaseMs' | 'isLate'> {
  readonly startedAt: number;
  readonly heartbeatAt: number;
}

/** All engines with their times, by launch. */
export async function listExecutors(database: Database): Promise<ExecutorRecord[]> {
  const found = await database.read(sql`
    SELECT ${selected}, e.started_at, e.heartbeat_at, e.lease_until_epoch_ms,
      CASE WHEN e.lease_until_epoch_ms < ${nowMs} THEN 1 ELSE 0 END AS is_over
    FROM ${executors} AS e
    ORDER BY e.incarnation_id`);
  const records = found.map((row) => ({
    ...columns.toRecord(row),
    isLeaseOver: row['is_over'] === 1,
    startedAt: Number(row['started_at']),
    heartbeatAt: Number(row['heartbeat_at']),
    leaseUntil: Number(row['lease_until_epoch_ms']),
  }));
  // There are few, and no index has this order.
  return records.sort((a, b) => a.startedAt - b.startedAt);
}

/** Removes an engine that has handed back its workflows. */
export async function removeIncarnation(database: Database, incarnationID: string): Promise<void> {
  await database.run(removal(incarnationID));
}
