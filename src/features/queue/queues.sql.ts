// Queues that are stored in the database, and which queues are paused.
import { newID } from '../../kernel/base/ids.js';
import type { QueueRecord } from './queue.js';
import { lock, nowMs, oneOf, type Sql, sql, table, type Value } from '../../kernel/sql/sql.js';
import { commitLocked, lockAllClaims } from './claim-lock.sql.js';
import { TableColumns } from '../../database/columns.js';
import type { Database, Executor, Reader, Row } from '../../database/database.js';
import { lacks } from '../../database/lacking.js';

const queues = table('queues');
const paused = table('paused_queues');

const columns = new TableColumns<QueueRecord>([
  ['name', 'name', 'text'],
  ['concurrency', 'concurrency', 'int'],
  ['workerConcurrency', 'worker_concurrency', 'int'],
  ['rateLimitMax', 'rate_limit_max', 'int'],
  ['rateLimitPeriodSec', 'rate_limit_period_sec', 'float'],
  ['isPriorityEnabled', 'priority_enabled', 'bool'],
  ['isPartitionQueue', 'partition_queue', 'bool'],
  ['pollingIntervalSec', 'polling_interval_sec', 'float'],
  ['partitionConcurrency', 'partition_concurrency', 'int'],
  ['partitionWorkerConcurrency', 'partition_worker_concurrency', 'int'],
  ['partitionRateLimitMax', 'partition_rate_limit_max', 'int'],
  ['partitionRateLimitPeriodSec', 'partition_rate_limit_period_sec', 'float'],
  ['applicationName', 'application_name', 'text'],
]);
const releasing = table('slot_releasing_queues');
/** Of the table with the alias `q`. */
export const queueColumns = sql`
  ${columns.select('q')}, (SELECT COUNT(*) FROM ${releasing} AS s WHERE s.name = q.name) AS releases_parked_slots`;

export function toQueueRecord(row: Row): QueueRecord {
  const record = columns.toRecord(row);
  return Number(row['releases_parked_slots']) > 0 ? { ...record, releasesParkedSlots: true } : record;
}

/** Stored apart, because other programs use the table of queues too. */
async function setReleasing(executor: Executor, { name, releasesParkedSlots = false }: QueueRecord): Promise<void> {
  if (lacks(executor, 'slot_releasing_queues')) return;
  await executor.run(
    releasesParkedSlots
      ? sql`INSERT INTO ${releasing} (name) VALUES (${name}) ON CONFLICT DO NOTHING`
      : sql`DELETE FROM ${releasing} WHERE name = ${name}`,
  );
}

function assignments(record: QueueRecord): Sql {
  const [, ...settings] = columns.toValues(record) as [Value, ...Value[]];
  const [concurrency, worker, rateMax, ratePeriod, priority, partition, polling, ...rest] = settings;
  const [partitionConcurrency, partitionWorker, partitionRateMax, partitionRatePeriod, applicationName] = rest;
  return sql`
    concurrency = ${concurrency}, worker_concurrency = ${worker}, rate_limit_max = ${rateMax},
    rate_limit_period_sec = ${ratePeriod}, priority_enabled = ${priority}, partition_queue = ${partition},
    polling_interval_sec = ${polling}, partition_concurrency = ${partitionConcurrency},
    partition_worker_concurrency = ${partitionWorker}, partition_rate_limit_max = ${partitionRateMax},
    partition_rate_limit_period_sec = ${partitionRatePeriod}, application_name = ${applicationName}, updated_at = ${nowMs}`;
}

/** Inserts the queue if its name is free. Returns whether it was inserted. */
export async function insertQueue(executor: Executor, record: QueueRecord): Promise<boolean> {
  const values = columns.toValues(record).reduce<Sql>((all, value) => sql`${all}, ${value}`, sql`${newID()}`);
  const added = await executor.run(sql`
    INSERT INTO ${queues} (queue_id, ${columns.names}, created_at, updated_at)
    VALUES (${values}, ${nowMs}, ${nowMs})
    ON CONFLICT DO NOTHING
    RETURNING name`);
  if (added.length > 0) await setReleasing(executor, record);
  return added.length > 0;
}

/** Replaces the settings of an existing queue. */
export async function updateQueue(executor: Executor, record: QueueRecord): Promise<void> {
  await executor.run(sql`UPDATE ${queues} SET ${assignments(record)} WHERE name = ${record.name}`);
  await setReleasing(executor, record);
}

/** Reads the queue and locks its row until the commit. */
export async function lockQueue(tx: Executor, name: string): Promise<QueueRecord | null> {
  const [row] = await tx.run(
    sql`SELECT ${queueColumns} FROM ${queues} AS q WHERE q.name = ${name} ${lock('update', 'q')}`,
  );
  return row ? toQueueRecord(row) : null;
}

export async function findQueue(database: Reader, name: string): Promise<QueueRecord | null> {
  const [row] = await database.read(sql`SELECT ${queueColumns} FROM ${queues} AS q WHERE q.name = ${name}`);
  return row ? toQueueRecord(row) : null;
}

/** The queues of these applications and those without one; all queues if no applications are given. */
export async function listQueues(database: Database, applicationNames?: readonly string[]): Promise<QueueRecord[]> {
  const condition = applicationNames
    ? sql`WHERE q.application_name ${oneOf(applicationNames)} OR q.application_name IS NULL`
    : sql``;
  const found = await database.read(sql`SELECT ${queueColumns} FROM ${queues} AS q ${condition} ORDER BY q.name`);
  return found.map(toQueueRecord);
}

/** Deletes the queue. Its workflows stay enqueued until a queue of this name exists again. */
export async function deleteQueue(database: Database, name: string): Promise<boolean> {
  return database.transaction(async (tx) => {
    const deleted = await tx.run(sql`DELETE FROM ${queues} WHERE name = ${name} RETURNING name`);
    if (!lacks(tx, 'slot_releasing_queues')) await tx.run(sql`DELETE FROM ${releasing} WHERE name = ${name}`);
    return deleted.length > 0;
  });
}

/**
 * Pauses the queue; false if it was paused before. Takes the locks of claims and refills, so that those in flight have
 * ended when this resolves.
 */
export async function pauseQueue(database: Database, name: string): Promise<boolean> {
  const insert = sql`
    INSERT INTO ${paused} (name, paused_at) VALUES (${name}, ${nowMs}) ON CONFLICT DO NOTHING RETURNING name`;
  const [added = []] = await commitLocked(database, name, { statements: [insert], locks: lockAllClaims(name) });
  return added.length > 0;
}

/** Ends the pause; false if the queue was not paused. */
export async function resumeQueue(database: Database, name: string): Promise<boolean> {
  const removed = await database.run(sql`DELETE FROM ${paused} WHERE name = ${name} RETURNING name`);
  return removed.length > 0;
}

/** The paused queues, and when each was paused. */
export async function findPausedQueues(database: Reader): Promise<Map<string, number>> {
  const found = await database.read(sql`SELECT p.name, p.paused_at FROM ${paused} AS p ORDER BY p.name`);
  return new Map(found.map((row) => [row['name'] as string, row['paused_at'] as number]));
}
