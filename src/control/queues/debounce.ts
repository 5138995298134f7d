// Debouncing, shared by engine and client: postpones the pending workflow of a key, and validates the options.
import { DBOSInvalidArgumentError, DBOSQueueDuplicatedError } from '../../model/errors/errors.js';
import { optional, positiveNumber, string } from '../../model/validation/validation.js';
import { type Bounce, bounceIfDelayed } from '../../store/queues/debounce.js';
import { findDeduplicationHolders } from '../../store/runs/workflows.js';
import type { StartWorkflowParams } from './enqueue.js';
import { topics } from '../../store/notify/topics.js';
import type { Operator } from '../operator.js';

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

/** The deduplication ID under which the workflow of a key waits. */
export function debounceID({ name, className }: Callee, key: string): string {
  return `${className ?? ''}.${name}-${key}`;
}

export function firstDelayMs({ periodMs, timeoutMs = Infinity }: DebounceTimes): number {
  return Math.min(periodMs, timeoutMs);
}

/** Postpones the pending workflow of the key and replaces its input. Null if there is none. */
export async function putOff(operator: Operator, bounce: Bounce): Promise<string | null> {
  const { database, bus } = operator;
  for (;;) {
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
    if (!isOurs) throw new DBOSQueueDuplicatedError('', bounce.queueName, bounce.deduplicationID);
    // It is about to leave DELAYED, or was created in between: try again.
  }
}

const keyCheck = string();
const timeoutCheck = optional(positiveNumber);

/** Refuses invalid times, and options that conflict with debouncing. */
export function checkDebounce(
  { key, periodMs, timeoutMs }: DebounceTimes & { readonly key: string },
  refused: readonly string[],
): void {
  keyCheck.read(key, 'debounceKey');
  positiveNumber.read(periodMs, 'debouncePeriodMs');
  timeoutCheck.read(timeoutMs, 'debounceTimeoutMs');
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
