// Registers, changes, pauses and deletes queues in the database.
import { InvalidQueueError, OwnedByAnotherApplicationError } from '../../kernel/errors/errors.js';
import {
  checkQueueName,
  checkQueueParameters,
  type QueueConflictResolution,
  type QueueParameters,
  type QueueRecord,
  toQueueParameters,
  toQueueRecord,
} from './queue.js';
import { oneOf } from '../../kernel/check/validation.js';
import type { Database, Executor } from '../../database/database.js';
import {
  deleteQueue as deleteRow,
  findQueue,
  insertQueue,
  listQueues as listRows,
  lockQueue,
  pauseQueue as pause,
  resumeQueue as resume,
  updateQueue,
} from './queues.sql.js';
import { countQueues, type QueueStats } from './queue-stats.sql.js';
import { listVersions } from '../version/versions.sql.js';
import { topics } from '../../database/notify/topics.js';
import type { Operator } from '../../operator/operator.js';

export interface QueueRegistration {
  readonly name: string;
  readonly parameters: QueueParameters;
  readonly onConflict: QueueConflictResolution;
  /** The application that owns it; null for none. */
  readonly applicationName: string | null;
  /** The version of this process; decides whether 'update_if_latest_version' updates. */
  readonly applicationVersion: string | null;
}

/** Registers a queue and returns the stored row: an existing queue may have kept its settings. */
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

const conflictCheck = oneOf<QueueConflictResolution>(['update_if_latest_version', 'always_update', 'never_update']);

function checkConflictResolution({ onConflict }: QueueRegistration): void {
  conflictCheck.read(onConflict, 'options.onConflict');
}

function refuseForeign(stored: QueueRecord, applicationName: string | null): void {
  if (stored.applicationName === null || applicationName === null || stored.applicationName === applicationName) return;
  throw new OwnedByAnotherApplicationError(
    `Queue "${stored.name}" belongs to application "${stored.applicationName}". Choose another name for the queue of "${applicationName}".`,
  );
}

const PARTITION_LIMITS = ['partitionConcurrency', 'partitionWorkerConcurrency', 'partitionRateLimit'] as const;

/** Changes some settings of a queue. The resulting settings must be valid. */
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
  // Changing a partition limit recomputes the flag; otherwise it keeps its value.
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

/** The queues of these applications, by default of the operator's own, and those without an owner. */
export function listQueueRecords(
  operator: Operator,
  applicationName: string | readonly string[] | null = operator.applicationName,
): Promise<QueueRecord[]> {
  const names = applicationName === null ? undefined : [applicationName].flat();
  return operator.retrying(() => listRows(operator.database, names));
}

// The next three return whether they changed something. If the reply to an attempt was lost, they return false, because
// the retry finds it done. So they notify other processes in any case.

/** Deletes a queue; false if it does not exist. Its workflows wait until it is registered again. */
export async function deleteQueue(operator: Operator, name: string): Promise<boolean> {
  const isDeleted = await operator.retrying(() => deleteRow(operator.database, name));
  await operator.bus.publishAndWait(topics.queueChanges, ['']);
  return isDeleted;
}

/** Stops processes from claiming workflows of the queue until it is resumed; false if it was already paused. */
export async function pauseQueue(operator: Operator, name: string): Promise<boolean> {
  checkQueueName(name);
  const isPaused = await operator.retrying(() => pause(operator.database, name));
  await operator.bus.publishAndWait(topics.queueChanges, ['']);
  return isPaused;
}

/** Lets processes claim workflows of the queue again; false if it was not paused. */
export async function resumeQueue(operator: Operator, name: string): Promise<boolean> {
  checkQueueName(name);
  const isResumed = await operator.retrying(() => resume(operator.database, name));
  operator.bus.publish(topics.work, { queueName: name });
  return isResumed;
}

export type { QueueStats };

export interface QueueStatsQuery {
  /** The queues to count. Default: all. */
  readonly queueName?: string | readonly string[];
  /** Counts each partition separately. */
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
