// Queues that are kept in the database: registering, changing, pausing and removing them.
import { DBOSError, InvalidQueueError } from '../model/errors.js';
import {
  checkQueueName,
  checkQueueParameters,
  type QueueConflictResolution,
  type QueueParameters,
  type QueueRecord,
  toQueueParameters,
  toQueueRecord,
} from '../model/queues.js';
import type { Database, Executor } from '../store/database.js';
import {
  deleteQueue as deleteRow,
  findQueue,
  insertQueue,
  listQueues as listRows,
  lockQueue,
  pauseQueue as pause,
  resumeQueue as resume,
  updateQueue,
} from '../store/queues.js';
import { countQueues, type QueueStats } from '../store/queue-stats.js';
import { listVersions } from '../store/versions.js';

export interface QueueRegistration {
  readonly name: string;
  readonly parameters: QueueParameters;
  readonly onConflict: QueueConflictResolution;
  /** Who registers it; null leaves the queue to everybody. */
  readonly applicationName: string | null;
  /** The version that runs; it decides whether 'update_if_latest_version' updates. */
  readonly applicationVersion: string | null;
}

/** Registers a queue, and gives it as it is stored: the settings of a queue that was there may have been kept. */
export async function registerQueue(
  database: Database,
  registration: QueueRegistration,
): Promise<{ readonly record: QueueRecord; readonly isNew: boolean }> {
  const { name, parameters, applicationName } = registration;
  checkQueueName(name);
  checkQueueParameters(parameters);
  checkConflictResolution(registration);
  const wanted = toQueueRecord(name, parameters, applicationName);
  const isLatest = await isToUpdate(database, registration);
  for (;;) {
    const registered = await database.transaction((tx) => insertOrUpdate(tx, wanted, isLatest));
    // Undefined: the queue was deleted between the two statements.
    if (registered) return registered;
  }
}

async function insertOrUpdate(
  tx: Executor,
  wanted: QueueRecord,
  isUpdating: boolean,
): Promise<{ readonly record: QueueRecord; readonly isNew: boolean } | undefined> {
  if (await insertQueue(tx, wanted)) return { record: wanted, isNew: true };
  const stored = await lockQueue(tx, wanted.name);
  if (!stored) return undefined;
  refuseForeign(stored, wanted.applicationName);
  if (!isUpdating) return { record: stored, isNew: false };
  const record = { ...wanted, applicationName: wanted.applicationName ?? stored.applicationName };
  await updateQueue(tx, record);
  return { record, isNew: false };
}

async function isToUpdate(database: Database, registration: QueueRegistration): Promise<boolean> {
  const { onConflict, applicationName, applicationVersion } = registration;
  if (onConflict !== 'update_if_latest_version') return onConflict === 'always_update';
  const [latest] = await listVersions(database, applicationName ?? '');
  return latest === undefined || latest.versionName === applicationVersion;
}

function checkConflictResolution({ onConflict }: QueueRegistration): void {
  if (['update_if_latest_version', 'always_update', 'never_update'].includes(onConflict)) return;
  throw new InvalidQueueError(
    `onConflict must be 'update_if_latest_version', 'always_update' or 'never_update', but is ${String(onConflict)}.`,
  );
}

function refuseForeign(stored: QueueRecord, applicationName: string | null): void {
  if (stored.applicationName === null || applicationName === null || stored.applicationName === applicationName) return;
  throw new DBOSError(
    `Queue "${stored.name}" belongs to application "${stored.applicationName}". Choose another name for the queue of "${applicationName}".`,
  );
}

const PARTITION_LIMITS = ['partitionConcurrency', 'partitionWorkerConcurrency', 'partitionRateLimit'] as const;

/** Changes some settings of a queue; what they give together with the others must hold. */
export async function changeQueue(database: Database, name: string, change: QueueParameters): Promise<QueueRecord> {
  return database.transaction(async (tx) => {
    const stored = await lockQueue(tx, name);
    if (!stored) throw queueNotFound(name);
    const parameters = { ...toQueueParameters(stored), ...change };
    checkQueueParameters(parameters);
    // The flag follows the limits for partitions when they change. Without such limits it says something of its own.
    const isToFollow = PARTITION_LIMITS.some((limit) => limit in change) && !('partitionQueue' in change);
    const settings = isToFollow ? { ...parameters, partitionQueue: undefined } : parameters;
    const record = toQueueRecord(name, settings, stored.applicationName);
    await updateQueue(tx, record);
    return record;
  });
}

export function queueNotFound(name: string): InvalidQueueError {
  return new InvalidQueueError(`Queue '${name}' was not found in the database.`);
}

export function findQueueRecord(database: Database, name: string): Promise<QueueRecord | null> {
  return findQueue(database, name);
}

/** The queues of these applications and those that nobody owns. */
export function listQueueRecords(database: Database, applicationNames: readonly string[]): Promise<QueueRecord[]> {
  return listRows(database, applicationNames);
}

/** Removes a queue. Workflows in it wait until it is registered again. */
export async function deleteQueue(database: Database, name: string): Promise<void> {
  await deleteRow(database, name);
}

/** No process takes workflows from the queue until it is resumed. */
export async function pauseQueue(database: Database, name: string): Promise<void> {
  checkQueueName(name);
  await pause(database, name);
}

export async function resumeQueue(database: Database, name: string): Promise<void> {
  checkQueueName(name);
  await resume(database, name);
}

export type { QueueStats };

export interface QueueStatsQuery {
  /** The queues to count; all of them if none is given. */
  readonly queueName?: string | readonly string[];
  /** Counts each partition by itself. */
  readonly byPartition?: boolean;
}

export function getQueueStats(
  database: Database,
  { queueName, byPartition = false }: QueueStatsQuery,
  applicationName: string | null,
): Promise<QueueStats[]> {
  const queueNames = typeof queueName === 'string' ? [queueName] : queueName;
  return countQueues(database, { queueNames, isByPartition: byPartition, applicationName });
}
