// The queue in which a workflow is enqueued to run again: one of the application's, or the internal one.
import { InvalidQueueError } from '../../kernel/errors/errors.js';
import { limitsOf, INTERNAL_QUEUE } from './queue.js';
import { nullish, storableName } from '../../kernel/check/validation.js';
import { findQueue } from './queues.sql.js';
import type { Operator } from '../../operator/operator.js';

export interface QueueTargetOptions {
  /** The queue to enqueue it in. Default: the internal queue. */
  readonly queueName?: string;
  /** The partition of that queue. */
  readonly queuePartitionKey?: string;
}

export interface QueueTarget {
  readonly queueName: string;
  readonly partitionKey: string | null;
  /** Whether the queue claims by partition, so that a workflow without a key would never be claimed. */
  readonly isPartitioned: boolean;
}

const optionalName = nullish(storableName);

/** A partition key without a queue name is ignored: the internal queue has no partitions. */
export async function resolveQueueTarget(operator: Operator, options: QueueTargetOptions): Promise<QueueTarget> {
  const { queueName, queuePartitionKey = null } = options;
  if (queueName === undefined) return { queueName: INTERNAL_QUEUE, partitionKey: null, isPartitioned: false };
  storableName.read(queueName, 'queueName');
  optionalName.read(queuePartitionKey, 'queuePartitionKey');
  if (queueName.trim() === '') throw new InvalidQueueError('queueName must not be empty.');
  const stored = await operator.retrying(() => findQueue(operator.database, queueName));
  const limits = operator.memoryLimits?.(queueName) ?? (stored ? limitsOf(stored) : undefined);
  return { queueName, partitionKey: queuePartitionKey, isPartitioned: limits?.partition != null };
}

/** Refuses a workflow that would never be claimed. */
export function refuseMissingKey({ queueName, partitionKey, isPartitioned }: QueueTarget): void {
  if (!isPartitioned || partitionKey !== null) return;
  throw new InvalidQueueError(`Queue "${queueName}" is partitioned, so a workflow in it needs queuePartitionKey.`);
}
