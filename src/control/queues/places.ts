// Where workflows are put that are to run again: the internal queue, or one of the application's.
import { InvalidQueueError } from '../../model/errors/errors.js';
import { limitsOf } from '../../model/queues.js';
import { INTERNAL_QUEUE } from '../../store/runs/lifecycle.js';
import { findQueue } from '../../store/queues/queues.js';
import type { Operator } from '../operator.js';

export interface PlaceOptions {
  /** Where it is to wait; the internal queue unless given. */
  readonly queueName?: string;
  /** Its partition of that queue. */
  readonly queuePartitionKey?: string;
}

/** A place that was looked at. */
export interface CheckedPlace {
  readonly queueName: string;
  readonly partitionKey: string | null;
  /** Whether a workflow without a partition key would wait in the queue for ever. */
  readonly isPartitioned: boolean;
}

/** A key means nothing without the name of its queue. */
export async function checkPlace(operator: Operator, options: PlaceOptions): Promise<CheckedPlace> {
  const { queueName, queuePartitionKey = null } = options;
  if (queueName === undefined) return { queueName: INTERNAL_QUEUE, partitionKey: null, isPartitioned: false };
  if (queueName.trim() === '') throw new InvalidQueueError('queueName must not be empty.');
  const stored = await operator.retrying(() => findQueue(operator.database, queueName));
  const limits = operator.memoryLimits?.(queueName) ?? (stored ? limitsOf(stored) : undefined);
  return { queueName, partitionKey: queuePartitionKey, isPartitioned: limits?.partition != null };
}

/** Refuses a workflow that would wait in its queue for ever. */
export function refuseMissingKey({ queueName, partitionKey, isPartitioned }: CheckedPlace): void {
  if (!isPartitioned || partitionKey !== null) return;
  throw new InvalidQueueError(`Queue "${queueName}" is partitioned, so a workflow in it needs queuePartitionKey.`);
}
