// What the interface serves: a launched DBOS instance or a client. Each request gets its own operator, which stops
// retrying an unreachable database after a time limit.
import { internals } from '../../kernel/base/internals.js';
import type { StoreOperator } from '../client/enqueueing.js';
import { withRetrying } from '../../operator/operator.js';
import { DatabaseUnavailableError } from '../../kernel/errors/errors.js';
import type { QueueRecord } from '../../features/queue/queue.js';
import { withRetry } from '../../database/retry.js';

export type { StoreOperator };

/** What only a process that runs workflows can do. */
export interface LocalEngine {
  readonly executorID: string;
  readonly applicationVersion: string;
  /** Workflows running in this process. */
  readonly runCount: number;
  /** In-memory queues, which are not in the database. */
  memoryQueues(): readonly QueueRecord[];
  /** Puts the running workflows of a dead executor back into their queues. Returns their IDs. */
  recoverExecutor(executorID: string): Promise<string[]>;
}

/** `DBOS`, another instance, or a `DBOSClient`. */
export interface AdminSource {
  readonly [internals]: {
    /** Throws before launch. */
    readonly operator: StoreOperator;
    /** Undefined for a client. Throws before launch. */
    readonly localEngine?: LocalEngine;
  };
  /** Stops event receivers, so that no new workflows arrive from outside. */
  deactivateEventReceivers?(): Promise<void>;
}

/** The engine behind the source; undefined for a client. */
export function localEngine(source: AdminSource): LocalEngine | undefined {
  return source[internals].localEngine;
}

const REQUEST_MAX_MS = 30_000;

export interface RequestScope {
  readonly operator: StoreOperator;
  /** Cancels the timer. */
  end(): void;
}

/** Creates the operator of a request. */
export function beginRequest(source: AdminSource): RequestScope {
  const { operator } = source[internals];
  const { clock, logger } = operator;
  const late = new AbortController();
  const timer = clock.after(REQUEST_MAX_MS, () =>
    late.abort(new DatabaseUnavailableError('The system database has not answered in time.')),
  );
  return {
    operator: withRetrying(operator, (operation) =>
      withRetry(operation, { clock, logger, signal: late.signal, isIdempotent: true }),
    ),
    end: () => timer.cancel(),
  };
}
