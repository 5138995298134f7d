// What has gone on lately: workflows created and ended, how long they took, and how many waited, in buckets of time.
import { getQueueStats } from '../queue/queues.js';
import type { WorkflowStatusString } from '../../kernel/workflow/status.js';
import { type ActivityRange, countCreated, countEnded, countStarted, DURATION_CLASSES } from './activity.sql.js';
import type { QueueStats } from '../queue/queue-stats.sql.js';
import { type Operator, queryTimeoutMs } from '../../operator/operator.js';

export interface OverviewBucket {
  /** When it begins. */
  readonly at: number;
  readonly created: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly deadLettered: number;
  /** From start to end; null if none ended. About a tenth exact. */
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
  /** How many workflows were enqueued at its end, as far as it follows from what was created and claimed since. */
  readonly waiting: number;
  /** The longest time that a workflow claimed in it had waited. */
  readonly longestWaitMs: number | null;
}

export interface Overview {
  readonly bucketMs: number;
  readonly buckets: readonly OverviewBucket[];
  readonly queues: readonly QueueStats[];
}

/** Counts of a bucket, before they are put together. */
export interface BucketCounts {
  created: number;
  enqueued: number;
  claimed: number;
  longestWaitMs: number | null;
  readonly outcomes: Map<WorkflowStatusString, number>;
  /** By class of duration. */
  readonly durations: Map<number, number>;
}

export const OVERVIEW_WINDOWS = {
  '1h': { bucketMs: 60_000, buckets: 60 },
  '24h': { bucketMs: 900_000, buckets: 96 },
} as const;

export type OverviewWindow = keyof typeof OVERVIEW_WINDOWS;

/** Workflows of the current and the previous bucket may still come in: commits take time. */
const OPEN_BUCKETS = 2;

/**
 * Reads overviews of one window. It keeps the counts of buckets that are over, so that each reading after the first
 * costs four statements over the last minutes.
 */
export class OverviewReader {
  readonly #bucketMs: number;
  readonly #size: number;
  #known = new Map<number, BucketCounts>();

  constructor(window: OverviewWindow) {
    ({ bucketMs: this.#bucketMs, buckets: this.#size } = OVERVIEW_WINDOWS[window]);
  }

  async read(operator: Operator): Promise<Overview> {
    const bucketMs = this.#bucketMs;
    const last = Math.floor(operator.databaseClock.now() / bucketMs) * bucketMs;
    const first = last - (this.#size - 1) * bucketMs;
    const from = this.#firstUnknown(first, last);
    const range: ActivityRange = {
      from,
      before: last + bucketMs,
      bucketMs,
      applicationName: operator.applicationName,
      timeoutMs: queryTimeoutMs(operator),
    };
    const counted = await operator.retrying(() => count(operator, range));
    this.#known = new Map([...this.#known].filter(([at]) => at >= first && at < from));
    for (let at = from; at <= last; at += bucketMs) this.#known.set(at, counted.get(at) ?? emptyBucket());
    const queues = await getQueueStats(operator);
    return { bucketMs, buckets: toBuckets(this.#known, queues), queues };
  }

  /** Buckets that are over are not counted again. */
  #firstUnknown(first: number, last: number): number {
    const open = last - (OPEN_BUCKETS - 1) * this.#bucketMs;
    for (let at = first; at < open; at += this.#bucketMs) if (!this.#known.has(at)) return at;
    return open;
  }
}

async function count({ database }: Operator, range: ActivityRange): Promise<Map<number, BucketCounts>> {
  const buckets = new Map<number, BucketCounts>();
  const bucketAt = (at: number): BucketCounts => {
    const bucket = buckets.get(at) ?? emptyBucket();
    buckets.set(at, bucket);
    return bucket;
  };
  for (const { at, created, enqueued } of await countCreated(database, range)) {
    Object.assign(bucketAt(at), { created, enqueued });
  }
  for (const { at, claimed, longestWaitMs } of await countStarted(database, range)) {
    Object.assign(bucketAt(at), { claimed, longestWaitMs });
  }
  for (const { at, status, durationClass, ended } of await countEnded(database, range)) {
    const { outcomes, durations } = bucketAt(at);
    outcomes.set(status, (outcomes.get(status) ?? 0) + ended);
    durations.set(durationClass, (durations.get(durationClass) ?? 0) + ended);
  }
  return buckets;
}

function emptyBucket(): BucketCounts {
  return { created: 0, enqueued: 0, claimed: 0, longestWaitMs: null, outcomes: new Map(), durations: new Map() };
}

/** Goes back from what waits now. */
function toBuckets(counts: ReadonlyMap<number, BucketCounts>, queues: readonly QueueStats[]): OverviewBucket[] {
  let waiting = queues.reduce((sum, { enqueued }) => sum + enqueued, 0);
  const buckets: OverviewBucket[] = [];
  for (const [at, bucket] of [...counts].sort(([a], [b]) => b - a)) {
    const { created, outcomes, durations, longestWaitMs } = bucket;
    buckets.push({
      at,
      created,
      succeeded: outcomes.get('SUCCESS') ?? 0,
      failed: outcomes.get('ERROR') ?? 0,
      cancelled: outcomes.get('CANCELLED') ?? 0,
      deadLettered: outcomes.get('MAX_RECOVERY_ATTEMPTS_EXCEEDED') ?? 0,
      p50Ms: percentileOf(durations, 0.5),
      p95Ms: percentileOf(durations, 0.95),
      waiting,
      longestWaitMs,
    });
    waiting = Math.max(0, waiting - bucket.enqueued + bucket.claimed);
  }
  return buckets.reverse();
}

/** The end of the class in which the percentile lies. */
export function percentileOf(durations: ReadonlyMap<number, number>, share: number): number | null {
  const classes = [...durations].sort(([a], [b]) => a - b);
  const total = classes.reduce((sum, [, number]) => sum + number, 0);
  let below = 0;
  for (const [index, number] of classes) {
    below += number;
    if (below >= share * total) return DURATION_CLASSES[index] ?? DURATION_CLASSES.at(-1) ?? null;
  }
  return null;
}
