// Who acts on the system database: an engine, or a client. The verbs of this room take one as their first argument, do
// their work in the database, and publish what they have done.
import type { Clock } from '../kernel/base/clock.js';
import type { RemoteClock } from '../kernel/base/remote-clock.js';
import type { DLogger } from '../kernel/base/log.js';
import type { Codec } from '../kernel/codec/codec.js';
import type { QueueLimits } from '../features/queue/queue.js';
import type { Database } from '../database/database.js';
import type { Bus } from '../database/notify/bus.js';
import type { RetentionPolicy } from '../features/retention/policy.js';
import type { Archive } from '../features/retention/archive-target.js';
import type { Wait } from './row-watcher.js';
import type { RowWatchers } from './row-watchers.js';

/** The completion records that data sources hold of workflows. */
export interface CompletionRecords {
  /** The workflows were deleted: their records must not be taken for those of new workflows with the same IDs. */
  forgetDeleted(workflowIDs: readonly string[]): Promise<void>;
  /**
   * A workflow that has ended is about to run again from this step on. Awaits `assertEnded` between a deletion and its
   * commit: if someone else has rewound the workflow, the records of its new run must stay.
   */
  deleteFrom(workflowID: string, startStep: number, assertEnded: () => Promise<void>): Promise<void>;
}

export interface Operator {
  readonly database: Database;
  readonly codec: Codec;
  readonly clock: Clock;
  /** The clock by which waits end: the database's, as far as it is known. */
  readonly databaseClock: RemoteClock;
  readonly logger: DLogger;
  /** The application it acts for: it sees that application's rows and those without an application. Null sees all. */
  readonly applicationName: string | null;
  /** Time limit of ad-hoc queries; 0 for none, 30 seconds by default. */
  readonly queryTimeoutMs?: number;
  readonly watchers: RowWatchers;
  readonly bus: Bus;
  /** The limits of an in-memory queue, for operators that have such queues. */
  memoryLimits?(queueName: string): QueueLimits | undefined;
  /** Completion records in data sources, for operators that have data sources. */
  readonly dataSources?: CompletionRecords | undefined;
  /** Resolves when the completed steps of these workflows are recorded, for operators that run workflows. */
  written?(workflowIDs: readonly string[]): Promise<void>;
  /** What a workflow that runs in this process waits for; undefined if it runs elsewhere. */
  waitsOf?(workflowID: string): readonly Wait[] | undefined;
  /** Where workflows are archived before retention deletes them. */
  readonly archive?: Archive | undefined;
  /** The configured retention. */
  readonly retention?: RetentionPolicy | undefined;
  /** Retries an idempotent operation until the database is back or the operator stops. */
  retrying<T>(operation: () => Promise<T>): Promise<T>;
}

/** The operator with another way to retry. */
export function withRetrying<O extends Operator>(operator: O, retrying: Operator['retrying']): O {
  return new Proxy(operator, {
    get(target, key) {
      if (key === 'retrying') return retrying;
      // Its methods have private fields.
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

const QUERY_TIMEOUT_MS = 30_000;

export function queryTimeoutMs(operator: Operator): number {
  return operator.queryTimeoutMs ?? QUERY_TIMEOUT_MS;
}
