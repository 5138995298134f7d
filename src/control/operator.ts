// Who acts on the system database, and who hears of it: an engine, or a client. The verbs of this room take one as
// their first argument, do their work in the database, and tell the news.
import type { Clock } from '../base/clock.js';
import type { DLogger } from '../base/log.js';
import type { Codec } from '../codec/codec.js';
import type { QueueLimits } from '../model/queues.js';
import type { Database } from '../store/database.js';
import { INTERNAL_QUEUE } from '../store/runs/lifecycle.js';
import type { NewWorkflow } from '../store/runs/workflows.js';
import type { Watches } from './runs/watches.js';

export interface Operator {
  readonly database: Database;
  readonly codec: Codec;
  readonly clock: Clock;
  readonly logger: DLogger;
  /** The application that it acts for: it sees its own rows and those of nobody. Null acts for all. */
  readonly applicationName: string | null;
  /** How long a query of people's may take; 0 for any time, half a minute unless given. */
  readonly queryTimeoutMs?: number;
  readonly watches: Watches;
  readonly news: News;
  /** The limits of a queue that is kept in memory, where there are such queues. */
  memoryLimits?(queueName: string): QueueLimits | undefined;
  /** Repeats an operation that changes nothing when done twice, until the database is there or the operator ends. */
  retrying<T>(operation: () => Promise<T>): Promise<T>;
}

/** A place where workflows wait. Without a queue it is the internal one. */
export interface Place {
  readonly queueName: string | null;
  readonly partitionKey?: string | null;
}

/** Longer keys would not fit into a notification. */
const KEY_MAX = 1000;

/** The place as notifications carry it. Without the key, engines look for themselves which partitions have work. */
export function placeText({ queueName, partitionKey }: Place): string {
  const key = partitionKey != null && partitionKey.length <= KEY_MAX ? partitionKey : undefined;
  return JSON.stringify([queueName ?? INTERNAL_QUEUE, key]);
}

/** What processes are told, this one and others. Where a method gives a promise, this process knows of it then. */
export interface News {
  /** Workflows wait at these places. */
  queued(places: Iterable<Place>): void;
  /** A workflow was delayed, or its delay was changed. */
  delayed(): void;
  /** The state of workflows was changed from outside their runs: they were cancelled, resumed, rewound or deleted. */
  changed(workflowIDs: readonly string[]): Promise<void>;
  /** The queues of the database have changed. */
  queuesChanged(): Promise<void>;
  /** A schedule has changed, or several. */
  schedulesChanged(name?: string): Promise<void>;
}

const QUERY_TIMEOUT_MS = 30_000;

export function queryTimeoutMs(operator: Operator): number {
  return operator.queryTimeoutMs ?? QUERY_TIMEOUT_MS;
}

/** Workflows were put into queues. */
export function tellOfQueued(
  news: News,
  workflows: readonly Pick<NewWorkflow, 'status' | 'queueName' | 'queuePartitionKey'>[],
): void {
  if (workflows.some(({ status }) => status === 'DELAYED')) news.delayed();
  const ready = workflows.filter(({ status }) => status === 'ENQUEUED');
  news.queued(ready.map(({ queueName, queuePartitionKey }) => ({ queueName, partitionKey: queuePartitionKey })));
}
