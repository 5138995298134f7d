// Debouncing, shared by engine and client: postpones the pending workflow of a key, and validates the options.
import { type BackoffPolicy, backoffMs } from '../../kernel/base/backoff.js';
import { sleep } from '../../kernel/base/clock.js';
import { DBOSInvalidArgumentError, DBOSQueueDuplicatedError } from '../../kernel/errors/errors.js';
import { optional, positiveNumber, storableName } from '../../kernel/check/validation.js';
import { type Bounce, bounceIfDelayed, releaseUnlessDelayed } from './debounce.sql.js';
import { findDeduplicationHolders } from '../../run/rows/workflows.js';
import type { StartWorkflowParams } from './enqueue.js';
import { topics } from '../../database/notify/topics.js';
import type { Operator } from '../../operator/operator.js';
import { refuseTooLong } from '../../operator/time-limit.js';

/** The function that a debounced workflow runs. */
interface Callee {
  readonly name: string;
  readonly className: string | null;
}

export interface DebounceTimes {
  readonly periodMs: number;
  /** The longest time a workflow can be postponed, from the first call on. */
  readonly timeoutMs: number | undefined;
}

/** Each repetition means that the key has changed hands in between. */
const ATTEMPTS_MAX = 10;
const BACKOFF: BackoffPolicy = { firstMs: 5, maxMs: 500, rate: 2, jitter: 0.5 };

/** The deduplication ID under which the workflow of a key waits. */
export function debounceID({ name, className }: Callee, key: string): string {
  return `${className ?? ''}.${name}-${key}`;
}

export function firstDelayMs({ periodMs, timeoutMs = Infinity }: DebounceTimes): number {
  return Math.min(periodMs, timeoutMs);
}

/** Postpones the pending workflow of the key and replaces its input. Null if there is none. */
export async function putOff(operator: Operator, bounce: Bounce): Promise<string | null> {
  const { clock, database, bus } = operator;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    // The first repetition is the usual one.
    if (attempt > 2) await sleep(clock, backoffMs(BACKOFF, attempt - 2));
    const bouncedID = await operator.retrying(() => bounceIfDelayed(database, bounce));
    if (bouncedID !== undefined) {
      bus.publish(topics.delays, '');
      return bouncedID;
    }
    const [holder] = await operator.retrying(() => findDeduplicationHolders(database, [bounce]));
    if (!holder) return null;
    const isForAnybody = holder.applicationName === null || bounce.applicationName === null;
    const isOurs =
      holder.isDebounced &&
      holder.name === bounce.name &&
      (holder.className ?? '') === (bounce.className ?? '') &&
      (isForAnybody || holder.applicationName === bounce.applicationName);
    if (!isOurs) break;
    // It has left DELAYED, perhaps with its key, or was created in between: try again.
    await operator.retrying(() => releaseUnlessDelayed(database, bounce));
  }
  throw new DBOSQueueDuplicatedError('', bounce.queueName, bounce.deduplicationID);
}

const timeoutCheck = optional(positiveNumber);

/** Refuses invalid times, and options that conflict with debouncing. */
export function checkDebounce(
  { key, periodMs, timeoutMs }: DebounceTimes & { readonly key: string },
  refused: readonly string[],
): void {
  storableName.read(key, 'debounceKey');
  positiveNumber.read(periodMs, 'debouncePeriodMs');
  timeoutCheck.read(timeoutMs, 'debounceTimeoutMs');
  refuseTooLong(periodMs, 'debouncePeriodMs');
  refuseTooLong(timeoutMs, 'debounceTimeoutMs');
  if (refused.length > 0) {
    throw new DBOSInvalidArgumentError(`A debounced workflow cannot have: ${refused.join(', ')}.`, refused[0]);
  }
}

/** The parameters that conflict with debouncing, by name. */
export function refusedParams(params: StartWorkflowParams): string[] {
  const { deduplicationID, delaySeconds, priority, queuePartitionKey } = params.enqueueOptions ?? {};
  const refused = Object.entries({ deduplicationID, delaySeconds, priority, queuePartitionKey })
    .filter(([, value]) => value !== undefined)
    .map(([name]) => name);
  if (params.duplicationPolicy === 'return-existing') refused.push("duplicationPolicy 'return-existing'");
  if (params.workflowIDReusePolicy === 'reject') refused.push("workflowIDReusePolicy 'reject'");
  return refused;
}
