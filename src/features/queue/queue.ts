// Queues: settings, their validation, and the limits that follow from them.
import { timed } from '../../kernel/check/duration.js';
import { type DurationText, inMs, inSeconds } from '../../kernel/base/duration.js';
import { DBOSInvalidQueuePriorityError, InvalidQueueError } from '../../kernel/errors/errors.js';
import {
  boolean,
  type Check,
  filledName,
  INT_MAX,
  integer,
  messageOf,
  nullish,
  positiveNumber,
  lenientRecord,
  record,
  shown,
} from '../../kernel/check/validation.js';

/** For workflows that are recovered, resumed or forked without a queue of their own. */
export const INTERNAL_QUEUE = '_dbos_internal_queue';

/** The most workflows that may start in any period of this length. */
export interface QueueRateLimit {
  readonly limitPerPeriod: number;
  readonly periodSec: number;
}

/** The same as an option. */
export interface QueueRateLimitOption {
  readonly limitPerPeriod: number;
  readonly periodSec: number | DurationText;
}

export interface QueueParameters {
  /** The queue's workflows that one process may run at once. */
  readonly workerConcurrency?: number;
  /** The queue's workflows that all processes together may run at once. */
  readonly globalConcurrency?: number;
  readonly rateLimit?: QueueRateLimitOption;
  /** The same three for each partition. Setting one of them makes the queue partitioned. */
  readonly partitionConcurrency?: number;
  readonly partitionWorkerConcurrency?: number;
  readonly partitionRateLimit?: QueueRateLimitOption;
  /** How often to poll for work without wake-ups. */
  readonly minPollingIntervalMs?: number | DurationText;
  /** The older name of `globalConcurrency`. */
  readonly concurrency?: number;
  /** For other libraries; Everstep always respects priorities. */
  readonly priorityEnabled?: boolean;
  /** Without partition limits: the queue's own limits apply to each partition. */
  readonly partitionQueue?: boolean;
  /** A workflow that is parked leaves its slot, and needs one again to continue. Without it, it stays in memory. */
  readonly releaseSlotWhileParked?: boolean;
}

/** The parameters of a stored queue, in the units of their names. */
export interface QueueSettings extends QueueParameters {
  readonly rateLimit?: QueueRateLimit;
  readonly partitionRateLimit?: QueueRateLimit;
  readonly minPollingIntervalMs?: number;
}

/** What to do if a queue of that name exists. */
export type QueueConflictResolution = 'update_if_latest_version' | 'always_update' | 'never_update';

export interface RegisterQueueOptions extends QueueParameters {
  readonly onConflict?: QueueConflictResolution;
}

/** A queue's row. */
export interface QueueRecord {
  readonly name: string;
  readonly concurrency: number | null;
  readonly workerConcurrency: number | null;
  readonly rateLimitMax: number | null;
  readonly rateLimitPeriodSec: number | null;
  readonly isPriorityEnabled: boolean;
  readonly isPartitionQueue: boolean;
  readonly pollingIntervalSec: number;
  readonly partitionConcurrency: number | null;
  readonly partitionWorkerConcurrency: number | null;
  readonly partitionRateLimitMax: number | null;
  readonly partitionRateLimitPeriodSec: number | null;
  readonly applicationName: string | null;
  readonly releasesParkedSlots?: boolean;
}

/** Limits of a queue or of each of its partitions; null for none. */
export interface Limits {
  readonly concurrency: number | null;
  readonly workerConcurrency: number | null;
  readonly rate: { readonly max: number; readonly periodMs: number } | null;
}

export interface QueueLimits {
  readonly whole: Limits;
  /** Null for a queue without partitions. */
  readonly partition: Limits | null;
}

export const UNLIMITED: Limits = { concurrency: null, workerConcurrency: null, rate: null };

export function isUnlimited({ concurrency, workerConcurrency, rate }: Limits): boolean {
  return concurrency === null && workerConcurrency === null && rate === null;
}

/** Names with this prefix are reserved for the library. */
const RESERVED_PREFIX = '_dbos_';
const DEFAULT_POLLING_MS = 1000;

export function checkQueueName(name: string): void {
  refuseProblem(filledName, name, 'The name of a queue');
  if (name.startsWith(RESERVED_PREFIX)) {
    throw new InvalidQueueError(
      `Queue names that begin with "${RESERVED_PREFIX}" are reserved. Rename the queue "${name}".`,
    );
  }
}

// Stored as 32-bit numbers.
const count = nullish(integer({ min: 1, max: INT_MAX }));
const rateLimit = nullish(
  record({ limitPerPeriod: integer({ min: 1, max: INT_MAX }), periodSec: timed(positiveNumber, inSeconds) }),
);
const parametersCheck = lenientRecord({
  globalConcurrency: count,
  concurrency: count,
  workerConcurrency: count,
  rateLimit,
  partitionConcurrency: count,
  partitionWorkerConcurrency: count,
  partitionRateLimit: rateLimit,
  minPollingIntervalMs: nullish(timed(positiveNumber)),
  priorityEnabled: nullish(boolean),
  partitionQueue: nullish(boolean),
  releaseSlotWhileParked: nullish(boolean),
} satisfies Record<keyof QueueParameters, Check<unknown>>);

/** Throws if the settings contradict each other. */
export function checkQueueParameters(parameters: QueueParameters): void {
  const { concurrency, globalConcurrency, workerConcurrency } = parameters;
  const { partitionConcurrency, partitionWorkerConcurrency } = parameters;
  if (concurrency != null && globalConcurrency != null) {
    throw new InvalidQueueError('concurrency is the older name of globalConcurrency. Set only globalConcurrency.');
  }
  refuseProblem(parametersCheck, parameters, 'The queue');
  const global = globalConcurrency ?? concurrency;
  const order = [
    ['workerConcurrency', workerConcurrency, 'globalConcurrency', global],
    ['partitionConcurrency', partitionConcurrency, 'globalConcurrency', global],
    ['partitionWorkerConcurrency', partitionWorkerConcurrency, 'partitionConcurrency', partitionConcurrency],
    ['partitionWorkerConcurrency', partitionWorkerConcurrency, 'workerConcurrency', workerConcurrency],
    ['partitionWorkerConcurrency', partitionWorkerConcurrency, 'globalConcurrency', global],
  ] as const;
  for (const [smallerName, smaller, largerName, larger] of order) {
    if (smaller != null && larger != null && smaller > larger) {
      throw new InvalidQueueError(
        `${smallerName} (${smaller}) must not be greater than ${largerName} (${larger}). Lower it, or raise ${largerName}.`,
      );
    }
  }
}

function refuseProblem(check: Check<unknown>, value: unknown, argument: string): void {
  const problem = check.refusalOf(value, argument);
  if (problem !== undefined) throw new InvalidQueueError(messageOf(problem, argument));
}

/** The row for checked settings. */
export function toQueueRecord(name: string, parameters: QueueParameters, applicationName: string | null): QueueRecord {
  const { rateLimit, partitionConcurrency, partitionWorkerConcurrency, partitionRateLimit } = parameters;
  return {
    name,
    concurrency: parameters.globalConcurrency ?? parameters.concurrency ?? null,
    workerConcurrency: parameters.workerConcurrency ?? null,
    rateLimitMax: rateLimit?.limitPerPeriod ?? null,
    rateLimitPeriodSec: inSeconds(rateLimit?.periodSec) ?? null,
    isPriorityEnabled: parameters.priorityEnabled ?? true,
    isPartitionQueue:
      parameters.partitionQueue === true ||
      partitionConcurrency != null ||
      partitionWorkerConcurrency != null ||
      partitionRateLimit != null,
    pollingIntervalSec: (inMs(parameters.minPollingIntervalMs) ?? DEFAULT_POLLING_MS) / 1000,
    partitionConcurrency: partitionConcurrency ?? null,
    partitionWorkerConcurrency: partitionWorkerConcurrency ?? null,
    partitionRateLimitMax: partitionRateLimit?.limitPerPeriod ?? null,
    partitionRateLimitPeriodSec: inSeconds(partitionRateLimit?.periodSec) ?? null,
    applicationName,
    ...(parameters.releaseSlotWhileParked === true && { releasesParkedSlots: true }),
  };
}

/** The settings of a row, as its owner would write them. */
export function toQueueParameters(record: QueueRecord): QueueSettings {
  const { concurrency, workerConcurrency, partitionConcurrency, partitionWorkerConcurrency } = record;
  return {
    globalConcurrency: concurrency ?? undefined,
    workerConcurrency: workerConcurrency ?? undefined,
    rateLimit: toRateLimit(record.rateLimitMax, record.rateLimitPeriodSec),
    partitionConcurrency: partitionConcurrency ?? undefined,
    partitionWorkerConcurrency: partitionWorkerConcurrency ?? undefined,
    partitionRateLimit: toRateLimit(record.partitionRateLimitMax, record.partitionRateLimitPeriodSec),
    minPollingIntervalMs: Math.round(record.pollingIntervalSec * 1000 * 1000) / 1000,
    priorityEnabled: record.isPriorityEnabled,
    partitionQueue: record.isPartitionQueue,
    releaseSlotWhileParked: record.releasesParkedSlots,
  };
}

function toRateLimit(max: number | null, periodSec: number | null): QueueRateLimit | undefined {
  return max === null || periodSec === null ? undefined : { limitPerPeriod: max, periodSec };
}

/** The limits for claims that follow from a row's settings. */
export function limitsOf(record: QueueRecord): QueueLimits {
  const parameters = toQueueParameters(record);
  const own: Limits = {
    concurrency: record.concurrency,
    workerConcurrency: record.workerConcurrency,
    rate: toRate(parameters.rateLimit),
  };
  const partition: Limits = {
    concurrency: record.partitionConcurrency,
    workerConcurrency: record.partitionWorkerConcurrency,
    rate: toRate(parameters.partitionRateLimit),
  };
  const hasPartitionLimit = Object.values(partition).some((limit) => limit !== null);
  if (hasPartitionLimit) return { whole: own, partition };
  return record.isPartitionQueue ? { whole: UNLIMITED, partition: own } : { whole: own, partition: null };
}

function toRate(limit: QueueRateLimit | undefined): Limits['rate'] {
  return limit === undefined ? null : { max: limit.limitPerPeriod, periodMs: Math.ceil(limit.periodSec * 1000) };
}

const priorityCheck = integer({ max: INT_MAX });

export function checkPriority(priority: number): void {
  if (!priorityCheck.accepts(priority)) throw new DBOSInvalidQueuePriorityError(shown(priority), 0, INT_MAX);
}
