// Queues that are kept in the database: registering, changing, pausing and removing them.
import { DBOSError, InvalidQueueError } from '../../model/errors/errors.js';
import {
  checkQueueName,
  checkQueueParameters,
  type QueueConflictResolution,
  type QueueParameters,
  type QueueRecord,
  toQueueParameters,
  toQueueRecord,
} from '../../model/queues.js';
import type { Database, Executor } from '../../store/database.js';
import {
  deleteQueue as deleteRow,
  findQueue,
  insertQueue,
  listQueues as listRows,
  lockQueue,
  pauseQueue as pause,
  resumeQueue as resume,
  updateQueue,
} from '../../store/queues/queues.js';
import { countQueues, type QueueStats } from '../../store/queues/queue-stats.js';
import { listVersions } from '../../store/management/versions.js';
import { topics } from '../../store/notify/topics.js';
import type { Operator } from '../operator.js';

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
export async function registerQueue(operator: Operator, registration: QueueRegistration): Promise<QueueRecord> {
  const { name, parameters, applicationName } = registration;
  checkQueueName(name);
  checkQueueParameters(parameters);
  checkConflictResolution(registration);
  const wanted = toQueueRecord(name, parameters, applicationName);
  const { database } = operator;
  const { record, isNew } = await operator.retrying(async () => {
    const isUpdating = await isToUpdate(database, registration);
    for (;;) {
      const registered = await database.transaction((tx) => insertOrUpdate(tx, wanted, isUpdating));
      // Undefined: the queue was deleted between the two statements.
      if (registered) return registered;
    }
  });
  if (isNew) operator.logger.info(`Registered new queue: ${name}`);
  await operator.bus.publishAndWait(topics.queueChanges, ['']);
  return record;
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
export async function changeQueue(operator: Operator, name: string, change: QueueParameters): Promise<QueueRecord> {
  const changed = await operator.retrying(() => operator.database.transaction((tx) => changeIn(tx, name, change)));
  await operator.bus.publishAndWait(topics.queueChanges, ['']);
  return changed;
}

async function changeIn(tx: Executor, name: string, change: QueueParameters): Promise<QueueRecord> {
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
}

function queueNotFound(name: string): InvalidQueueError {
  return new InvalidQueueError(`Queue '${name}' was not found in the database.`);
}

export function findQueueRecord(operator: Operator, name: string): Promise<QueueRecord | null> {
  return operator.retrying(() => findQueue(operator.database, name));
}

export async function getQueueRecord(operator: Operator, name: string): Promise<QueueRecord> {
  const found = await findQueueRecord(operator, name);
  if (!found) throw queueNotFound(name);
  return found;
}

/** The queues of these applications, of the operator's own unless given, and those that nobody owns. */
export function listQueueRecords(
  operator: Operator,
  applicationName: string | readonly string[] | null = operator.applicationName,
): Promise<QueueRecord[]> {
  const names = applicationName === null ? undefined : [applicationName].flat();
  return operator.retrying(() => listRows(operator.database, names));
}

/** Removes a queue. Workflows in it wait until it is registered again. */
export async function deleteQueue(operator: Operator, name: string): Promise<void> {
  await operator.retrying(() => deleteRow(operator.database, name));
  await operator.bus.publishAndWait(topics.queueChanges, ['']);
}

/** No process takes workflows from the queue until it is resumed. */
export async function pauseQueue(operator: Operator, name: string): Promise<void> {
  checkQueueName(name);
  await operator.retrying(() => pause(operator.database, name));
}

export async function resumeQueue(operator: Operator, name: string): Promise<void> {
  checkQueueName(name);
  await operator.retrying(() => resume(operator.database, name));
  operator.bus.publish(topics.work, { queueName: name });
}

export type { QueueStats };

export interface QueueStatsQuery {
  /** The queues to count; all of them if none is given. */
  readonly queueName?: string | readonly string[];
  /** Counts each partition by itself. */
  readonly byPartition?: boolean;
}

export function getQueueStats(
  operator: Operator,
  { queueName, byPartition = false }: QueueStatsQuery = {},
): Promise<QueueStats[]> {
  const queueNames = typeof queueName === 'string' ? [queueName] : queueName;
  const query = { queueNames, isByPartition: byPartition, applicationName: operator.applicationName };
  return operator.retrying(() => countQueues(operator.database, query));
}
