// The one retry loop around transient failures of the database. It repeats what surely did not happen; what may
// have happened (the connection broke during COMMIT) it repeats only if the caller says that doing it twice is
// the same as doing it once.
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
  /** Ends the retrying with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Guarded statements may run again even if the first run may have been committed. */
  readonly isIdempotent: boolean;
  readonly policy?: BackoffPolicy;
}

const POLICY: BackoffPolicy = { firstMs: 50, maxMs: 10_000, rate: 2, jitter: 0.5 };
/** Attempts that fail in a row before the log speaks up; a single hiccup is not worth a line. */
const SILENT_ATTEMPTS = 2;

/** What an error says about the operation: it cannot have happened, it may have, or trying again is of no use. */
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

/** Serialization failures, deadlocks, lock timeouts, and a server short of resources or restarting. */
function isTransientState(state: string | undefined): boolean {
  if (state === undefined || state === '57014') return false;
  return state === '40001' || state === '40P01' || state === '55P03' || /^(08|53|57)/.test(state);
}

/** Runs the operation until it succeeds, fails for good, or the signal aborts. */
export async function withRetry<T>(operation: () => Promise<T>, options: RetryOptions): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const result = await operation();
      if (attempt > SILENT_ATTEMPTS) options.logger.info('The database is back; work goes on.');
      return result;
    } catch (error) {
      const failure = classifyFailure(error);
      if (failure === 'final' || (failure === 'unknown' && !options.isIdempotent)) throw error;
      if (options.signal?.aborted) throw error;
      const delayMs = backoffMs(options.policy ?? POLICY, attempt);
      if (attempt === SILENT_ATTEMPTS) {
        options.logger.warn(`${(error as Error).message} Trying again until it works.`);
      }
      await sleep(options.clock, delayMs, options.signal);
    }
  }
}
