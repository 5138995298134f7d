// Queues, schedules, versions and executors as clients see them.
import { type QueueRecord, toQueueParameters } from '../../model/queues.js';
import type { WorkflowSchedule } from '../../control/schedules/schedules.js';
import type { Peer } from '../../store/liveness/executors.js';
import { servicesOf } from '../../store/liveness/executors.js';
import {
  anything,
  flag,
  integer,
  listOf,
  named,
  nullable,
  number,
  object,
  optional,
  type Read,
  text,
} from '../shape.js';
import { type ShownValue, showValue, shownValue } from './value.js';

const rateLimit = named('RateLimit', object({ limitPerPeriod: integer({ min: 1 }), periodSec: number() }));

export const queueView = named(
  'Queue',
  object({
    name: text(),
    isInMemory: flag('Defined in the process that answers, and not in the database.'),
    isPaused: flag(),
    pausedAt: nullable(integer()),
    globalConcurrency: optional(integer()),
    workerConcurrency: optional(integer()),
    rateLimit: optional(rateLimit),
    partitionConcurrency: optional(integer()),
    partitionWorkerConcurrency: optional(integer()),
    partitionRateLimit: optional(rateLimit),
    minPollingIntervalMs: optional(number()),
    priorityEnabled: optional(flag()),
    partitionQueue: optional(flag()),
    applicationName: optional(text()),
  }),
);

export type QueueView = Read<typeof queueView>;

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

export const queueStats = named(
  'QueueStats',
  object({
    queueName: text(),
    partitionKey: optional(nullable(text())),
    enqueued: integer({ about: 'Workflows that wait to be taken.' }),
    delayed: integer({ about: 'Workflows that wait for their time.' }),
    running: integer({ about: 'Workflows that were taken and have not ended.' }),
    oldestWaitMs: nullable(integer()),
  }),
);

export const scheduleView = named(
  'Schedule',
  object({
    scheduleId: text(),
    scheduleName: text(),
    workflowName: text(),
    workflowClassName: text(),
    schedule: text(),
    status: text(),
    context: shownValue,
    lastFiredAt: nullable(text()),
    automaticBackfill: flag(),
    cronTimezone: nullable(text()),
    queueName: nullable(text()),
    overlap: text(),
    jitterMs: number(),
    applicationName: optional(text()),
  }),
);

export function viewSchedule(schedule: WorkflowSchedule): Omit<WorkflowSchedule, 'context'> & { context: ShownValue } {
  return { ...schedule, context: showValue(schedule.context) };
}

export const versionView = named(
  'Version',
  object({
    versionId: text(),
    versionName: text(),
    versionTimestamp: integer(),
    createdAt: integer(),
    applicationName: optional(text()),
  }),
);

export const executorView = named(
  'Executor',
  object({
    incarnationID: text({ about: 'Of this launch; an executor that is launched again has another one.' }),
    executorID: text(),
    applicationName: text(),
    applicationVersion: text(),
    host: text(),
    pid: integer(),
    isAlive: flag('Its lease is not over.'),
    listenQueues: optional(nullable(listOf(text()))),
    memoryQueues: optional(listOf(text())),
    functions: optional(listOf(text(), { about: 'Its workflows, as class.name.' })),
    instances: optional(listOf(text())),
  }),
);

export function viewExecutor(peer: Peer): Read<typeof executorView> {
  const { isLeaseOver, leaseLeftMs: _, metadata, ...rest } = peer;
  // What it says of itself are lists of names.
  const services = servicesOf({ metadata }) as Pick<
    Read<typeof executorView>,
    'listenQueues' | 'memoryQueues' | 'functions' | 'instances'
  >;
  return { ...rest, isAlive: !isLeaseOver, ...services };
}

export const explanation = named(
  'Explanation',
  object({
    workflowID: text(),
    status: nullable(text()),
    reason: text({ about: 'One of a fixed set of words, for programs.' }),
    message: text({ about: 'A sentence or two, for people.' }),
    details: anything(),
  }),
);
