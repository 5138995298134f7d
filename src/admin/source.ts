// What the interface acts for: a launched instance of DBOS, or a client. Each request has its own operator, which gives up
// on an unavailable database instead of retrying indefinitely.
import { internals } from '../base/internals.js';
import type { StoreOperator } from '../client/enqueueing.js';
import { DatabaseUnavailableError } from '../model/errors/errors.js';
import type { QueueRecord } from '../model/queues.js';
import { withRetry } from '../store/retry.js';

export type { StoreOperator };

/** What only a process that runs workflows knows and can do. */
export interface LocalEngine {
  readonly executorID: string;
  readonly applicationVersion: string;
  /** How many workflows run in this process. */
  readonly runCount: number;
  /** The queues that are defined in memory only. */
  memoryQueues(): readonly QueueRecord[];
  /** Requeues the running workflows of a dead executor. Returns their IDs. */
  recoverExecutor(executorID: string): Promise<string[]>;
}

/** `DBOS`, another instance, or a `DBOSClient`. */
export interface AdminSource {
  readonly [internals]: {
    /** Throws before launch. */
    readonly operator: StoreOperator & Partial<LocalEngine>;
  };
  /** Stops event receivers. */
  deactivateEventReceivers?(): Promise<void>;
}

/** The engine behind the source; undefined for a client. */
export function localEngine(source: AdminSource): LocalEngine | undefined {
  const { operator } = source[internals];
  return operator.recoverExecutor === undefined ? undefined : (operator as StoreOperator & LocalEngine);
}

const REQUEST_MAX_MS = 30_000;

export interface RequestScope {
  readonly operator: StoreOperator;
  /** Cancels the timer. */
  end(): void;
}

/** The operator of a request. `onChanged` gets the IDs of the workflows it changes. */
export function beginRequest(source: AdminSource, onChanged: (workflowIDs: readonly string[]) => void): RequestScope {
  const { operator } = source[internals];
  const { clock, logger, news } = operator;
  const late = new AbortController();
  const timer = clock.after(REQUEST_MAX_MS, () =>
    late.abort(new DatabaseUnavailableError('The system database has not answered in time.')),
  );
  return {
    operator: {
      ...pickOperator(operator),
      news: {
        queued: (places) => news.queued(places),
        delayed: () => news.delayed(),
        queuesChanged: () => news.queuesChanged(),
        schedulesChanged: (name) => news.schedulesChanged(name),
        async changed(workflowIDs) {
          await news.changed(workflowIDs);
          onChanged(workflowIDs);
        },
      },
      retrying: (operation) => withRetry(operation, { clock, logger, signal: late.signal, isIdempotent: true }),
    },
    end: () => timer.cancel(),
  };
}

/** Only what a request needs: spreading an engine or a client would miss its accessors and methods. */
function pickOperator(operator: StoreOperator): Omit<StoreOperator, 'news' | 'retrying'> {
  const { database, codec, clock, logger, applicationName, queryTimeoutMs, watches, store } = operator;
  const memoryLimits = (queueName: string) => operator.memoryLimits?.(queueName);
  return { database, codec, clock, logger, applicationName, queryTimeoutMs, watches, store, memoryLimits };
}
