// A queue in detail: how much waits, for how long, who runs it, how fast, and its largest partitions.
import { countRunning } from '../listing/open-work.sql.js';
import { countClaimed } from './claim-rate.sql.js';
import { NO_WORK, type QueueStats } from './queue-stats.sql.js';
import type { Operator } from '../../operator/operator.js';
import { getQueueStats } from './queues.js';

export interface QueueDetails extends QueueStats {
  /** Over the last ten minutes. */
  readonly claimedPerMinute: number;
  /** The busiest first. */
  readonly executors: readonly { readonly executorID: string; readonly running: number }[];
  /** The largest first, at most 100. Empty for a queue without partitions. */
  readonly partitions: readonly QueueStats[];
  readonly partitionCount: number;
}

const RATE_MINUTES = 10;
const PARTITIONS_MAX = 100;

export async function getQueueDetails(operator: Operator, queueName: string): Promise<QueueDetails> {
  const { database } = operator;
  const [stats] = await getQueueStats(operator, { queueName });
  const parts = await getQueueStats(operator, { queueName, byPartition: true });
  const partitions = parts.filter(({ partitionKey }) => partitionKey !== null).sort(byDepth);
  const running = await operator.retrying(() => countRunning(database, queueName));
  const claimed = await operator.retrying(() => countClaimed(database, queueName, RATE_MINUTES * 60_000));
  return {
    ...(stats ?? { queueName, ...NO_WORK }),
    claimedPerMinute: claimed / RATE_MINUTES,
    executors: [...running]
      .map(([executorID, count]) => ({ executorID, running: count }))
      .sort((a, b) => b.running - a.running),
    partitions: partitions.slice(0, PARTITIONS_MAX),
    partitionCount: partitions.length,
  };
}

function byDepth(a: QueueStats, b: QueueStats): number {
  return b.enqueued - a.enqueued || b.running - a.running || b.delayed - a.delayed;
}
