// Queues, schedules, versions and executors as the API returns them.
import { type QueueRecord, toQueueParameters } from './queue.js';
import type { WorkflowSchedule } from '../schedule/schedules.js';
import { REMEDIES } from '../../faces/http/views/remedy.js';
import type { ExecutorRecord } from '../liveness/executors.sql.js';
import { servicesOf } from '../liveness/executors.sql.js';
import {
  anything,
  boolean,
  integer,
  nullable,
  number,
  oneOf,
  optional,
  record,
  type Checked,
} from '../../kernel/check/validation.js';
import { text, listOf } from '../../faces/http/shape.js';
import { type ShownValue, showValue, shownValue } from '../../faces/http/views/value.js';

const rateLimit = record({ limitPerPeriod: integer({ min: 1 }), periodSec: number() }).named('RateLimit');

export const queueView = record({
  name: text,
  isInMemory: boolean.about('Defined in this process, not in the database.'),
  isPaused: boolean,
  pausedAt: nullable(integer()),
  globalConcurrency: optional(integer()),
  workerConcurrency: optional(integer()),
  rateLimit: optional(rateLimit),
  partitionConcurrency: optional(integer()),
  partitionWorkerConcurrency: optional(integer()),
  partitionRateLimit: optional(rateLimit),
  minPollingIntervalMs: optional(number()),
  priorityEnabled: optional(boolean),
  partitionQueue: optional(boolean),
  releaseSlotWhileParked: optional(boolean),
  applicationName: optional(text),
}).named('Queue');

export type QueueView = Checked<typeof queueView>;

export function viewQueue(record: QueueRecord, paused: ReadonlyMap<string, number>, isInMemory = false): QueueView {
  const pausedAt = paused.get(record.name) ?? null;
  return {
    name: record.name,
    isInMemory,
    isPaused: pausedAt !== null,
    pausedAt,
    ...(toQueueParameters(record) as Omit<QueueView, 'name' | 'isInMemory' | 'isPaused' | 'pausedAt'>),
    applicationName: record.applicationName ?? undefined,
  };
}

const statsFields = {
  queueName: text,
  partitionKey: optional(nullable(text)),
  enqueued: integer().about('Workflows waiting to be claimed.'),
  delayed: integer().about('Workflows waiting for their delay to end.'),
  running: integer().about('Workflows that were claimed, have not ended and are not parked.'),
  parked: integer().about('Workflows that were claimed and wait out of memory.'),
  oldestWaitMs: nullable(integer()),
};

export const queueStats = record(statsFields).named('QueueStats');

export const queueDetails = record({
  ...statsFields,
  claimedPerMinute: number().about('Over the last ten minutes.'),
  executors: listOf(record({ executorID: text, running: integer() })).about('The busiest first.'),
  partitions: listOf(queueStats).about('The largest first, at most 100.'),
  partitionCount: integer(),
}).named('QueueDetails');

export const scheduleView = record({
  scheduleId: text,
  scheduleName: text,
  workflowName: text,
  workflowClassName: text,
  schedule: text,
  status: text,
  context: shownValue,
  lastFiredAt: nullable(text),
  automaticBackfill: boolean,
  cronTimezone: nullable(text),
  queueName: nullable(text),
  overlap: text,
  jitterMs: number(),
  applicationName: optional(text),
}).named('Schedule');

export function viewSchedule(schedule: WorkflowSchedule): Omit<WorkflowSchedule, 'context'> & { context: ShownValue } {
  return { ...schedule, context: showValue(schedule.context) };
}

export const versionView = record({
  versionId: text,
  versionName: text,
  versionTimestamp: integer(),
  createdAt: integer(),
  applicationName: optional(text),
}).named('Version');

export const executorView = record({
  incarnationID: text.about('Identifies this launch of the executor.'),
  executorID: text,
  applicationName: text,
  applicationVersion: text,
  host: text,
  pid: integer(),
  isAlive: boolean.about('Its lease has not expired.'),
  startedAt: integer(),
  heartbeatAt: integer(),
  leaseUntil: integer(),
  running: integer().about('Workflows that it runs.'),
  listenQueues: optional(nullable(listOf(text))),
  memoryQueues: optional(listOf(text)),
  functions: optional(listOf(text).about('Its workflows, as class.name.')),
  instances: optional(listOf(text)),
  formats: optional(listOf(text)),
  retention: optional(boolean.about('Whether it applies a retention policy.')),
}).named('Executor');

/** `running` counts workflows by executor ID. */
export function viewExecutor(
  executor: ExecutorRecord,
  running: ReadonlyMap<string, number>,
): Checked<typeof executorView> {
  const { incarnationID, executorID, applicationName, applicationVersion, host, pid, isLeaseOver, metadata } = executor;
  const { startedAt, heartbeatAt, leaseUntil } = executor;
  // The metadata holds lists of names.
  const services = servicesOf({ metadata }) as Pick<
    Checked<typeof executorView>,
    'listenQueues' | 'memoryQueues' | 'functions' | 'instances' | 'retention'
  >;
  const process = { incarnationID, executorID, applicationName, applicationVersion, host, pid };
  const times = { startedAt, heartbeatAt, leaseUntil };
  return { ...process, ...times, isAlive: !isLeaseOver, running: running.get(executorID) ?? 0, ...services };
}

export const explanation = record({
  workflowID: text,
  status: nullable(text),
  reason: text.about('A code, for programs.'),
  message: text.about('An explanation, for people.'),
  details: anything,
  action: nullable(
    record({ kind: oneOf(REMEDIES), label: text.about('For people.') }).about(
      'What helps; null if nothing has to be done.',
    ),
  ),
}).named('Explanation');
