// The retry loop for transient failures of the database. It repeats what certainly did not happen. What may have happened
// (the connection broke during COMMIT) it repeats only if the operation is idempotent.
import { type BackoffPolicy, backoffMs } from '../base/backoff.js';
import { type Clock, sleep } from '../base/clock.js';
import type { DLogger } from '../base/log.js';
import {
  CommitUnknownError,
  DatabaseBusyError,
  DatabaseFullError,
  DatabaseStatementError,
  DatabaseUnavailableError,
} from '../model/errors/database-errors.js';

export interface RetryOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  /** An abort ends the retries with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Whether to retry after a commit of unknown outcome. Guarded statements allow it. */
  readonly isIdempotent: boolean;
  readonly policy?: BackoffPolicy;
}

const POLICY: BackoffPolicy = { firstMs: 50, maxMs: 10_000, rate: 2, jitter: 0.5 };
/** Failures in a row before one is logged; a single hiccup is not worth a line. */
const SILENT_ATTEMPTS = 2;

/** What an error says about the operation: it did not happen, it may have, or retrying is useless. */
export type Failure = 'transient' | 'unknown' | 'final';

export function classifyFailure(error: unknown): Failure {
  if (error instanceof CommitUnknownError) return 'unknown';
  if (
    error instanceof DatabaseUnavailableError ||
    error instanceof DatabaseBusyError ||
    error instanceof DatabaseFullError
  ) {
    return 'transient';
  }
  if (error instanceof DatabaseStatementError && isTransientState(error.sqlState)) return 'transient';
  return 'final';
}

/** Serialization failure, deadlock, lock timeout, or a server that is restarting or out of resources. */
function isTransientState(state: string | undefined): boolean {
  if (state === undefined || state === '57014') return false;
  return state === '40001' || state === '40P01' || state === '55P03' || /^(08|53|57)/.test(state);
}

/** Runs the operation until it succeeds, fails for good, or the signal aborts. */
export async function withRetry<T>(operation: () => Promise<T>, options: RetryOptions): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const result = await operation();
      if (attempt > SILENT_ATTEMPTS) options.logger.info('The database is reachable again.');
      return result;
    } catch (error) {
      const failure = classifyFailure(error);
      if (failure === 'final' || (failure === 'unknown' && !options.isIdempotent)) throw error;
      if (options.signal?.aborted) throw error;
      const delayMs = backoffMs(options.policy ?? POLICY, attempt);
      if (attempt === SILENT_ATTEMPTS) {
        options.logger.warn(`${(error as Error).message} Retrying until it succeeds.`);
      }
      await sleep(options.clock, delayMs, options.signal);
    }
  }
}
