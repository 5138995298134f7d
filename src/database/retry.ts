// The retry loop for failures of the database. It repeats what certainly did not happen. What may have happened (the
// connection broke during COMMIT) it repeats only if the operation is idempotent.
import { type BackoffPolicy, backoffMs } from '../kernel/base/backoff.js';
import { type Clock, sleep } from '../kernel/base/clock.js';
import type { DLogger } from '../kernel/base/log.js';
import {
  CommitUnknownError,
  DatabaseAccessError,
  DatabaseBusyError,
  DatabaseCorruptError,
  DatabaseFullError,
  DatabaseStatementError,
  DatabaseUnavailableError,
  UnexplainedRefusalError,
} from '../kernel/errors/database-errors.js';

export interface RetryOptions {
  readonly clock: Clock;
  readonly logger: DLogger;
  /** An abort ends the retries with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Whether to retry after a commit of unknown outcome. Guarded statements allow it. */
  readonly isIdempotent: boolean;
  /**
   * Whether to wait out conditions of the database that may need an operator, such as refused logins. For engines: there
   * the failure would become the outcome of a workflow.
   */
  readonly isPatient?: boolean;
  /** After this time, the next failure is final. Default: never. */
  readonly limitMs?: number;
  readonly policy?: BackoffPolicy;
}

const POLICY: BackoffPolicy = { firstMs: 50, maxMs: 10_000, rate: 2, jitter: 0.5 };
/** Failures in a row before one is logged; a single hiccup is not worth a line. */
const SILENT_ATTEMPTS = 2;
/** Failures after which it is logged again. At the longest delay that is every 5 minutes. */
const REMINDER_ATTEMPTS = 30;

/** Attempts of what is refused without a reason that can be found. */
export const UNEXPLAINED_MAX = 5;

/** What an error says about the operation. */
export type Failure =
  /** It did not happen, and the cause passes by itself. */
  | 'transient'
  /** It may have happened. */
  | 'unknown'
  /** It did not happen. The cause is a condition of the database, which may need an operator. */
  | 'condition'
  /** It did not happen, and the cause cannot be found. It is tried a few times only. */
  | 'unexplained'
  /** It cannot succeed: the cause is in the data or in the statement. */
  | 'final';

export function classifyFailure(error: unknown): Failure {
  if (error instanceof CommitUnknownError) return 'unknown';
  if (error instanceof UnexplainedRefusalError) return 'unexplained';
  if (
    error instanceof DatabaseUnavailableError ||
    error instanceof DatabaseBusyError ||
    error instanceof DatabaseFullError
  ) {
    return 'transient';
  }
  if (error instanceof DatabaseAccessError || error instanceof DatabaseCorruptError) return 'condition';
  return error instanceof DatabaseStatementError ? classifyState(error.sqlState) : 'final';
}

/** Cardinality, data and integrity errors, errors in the statement other than a missing privilege, exceeded limits. */
const FINAL_STATES = /^(21|22|23|42(?!501)|54)/;
/**
 * Lost connections, serialization failures and deadlocks, exhausted resources, cancellations and shutdowns, lock timeouts,
 * and a server that is read-only during a failover.
 */
const TRANSIENT_STATES = /^(08|40|53|57|55P03|25006)/;
/** Out of memory, interrupted, or the schema or a lock changed meanwhile. All other codes without a class are final. */
const SQLITE_CONDITIONS = /^SQLITE_(NOMEM|INTERRUPT|PROTOCOL|SCHEMA|ABORT)/;

function classifyState(state = ''): Failure {
  if (!/^[0-9A-Z]{5}$/.test(state)) return SQLITE_CONDITIONS.test(state) ? 'condition' : 'final';
  if (FINAL_STATES.test(state)) return 'final';
  return TRANSIENT_STATES.test(state) ? 'transient' : 'condition';
}

/** Runs the operation until it succeeds, fails for good, or the signal aborts. */
export async function withRetry<T>(operation: () => Promise<T>, options: RetryOptions): Promise<T> {
  const pauses = new RetryPauses(options);
  const { clock, limitMs = Infinity } = options;
  const startedAt = clock.monotonic();
  let unknown: unknown;
  for (;;) {
    try {
      const result = await operation();
      pauses.onSuccess();
      return result;
    } catch (error) {
      const failure = classifyFailure(error);
      if (!isRetried(failure, options) || options.signal?.aborted) throw error;
      if (failure === 'unexplained' && pauses.failures + 1 >= UNEXPLAINED_MAX) throw error;
      const leftMs = limitMs - (clock.monotonic() - startedAt);
      if (failure === 'unknown') unknown = error;
      if (leftMs <= 0) throw unknown ?? error;
      await pauses.next(error, leftMs);
    }
  }
}

function isRetried(failure: Failure, { isIdempotent, isPatient = false }: RetryOptions): boolean {
  switch (failure) {
    case 'transient':
    case 'unexplained':
      return true;
    case 'unknown':
      return isIdempotent;
    case 'condition':
      return isPatient;
    case 'final':
      return false;
  }
}

/** The delays between the attempts of one operation, and what is logged about them. */
export class RetryPauses {
  readonly #options: Omit<RetryOptions, 'isIdempotent'>;
  #failures = 0;

  constructor(options: Omit<RetryOptions, 'isIdempotent'>) {
    this.#options = options;
  }

  /** Failures in a row so far. */
  get failures(): number {
    return this.#failures;
  }

  /** Waits before the next attempt, for `maxMs` at most. Rejects if the signal aborts. */
  async next(error: unknown, maxMs = Infinity): Promise<void> {
    const { clock, logger, policy = POLICY, signal } = this.#options;
    this.#failures += 1;
    const isReported = this.#failures === SILENT_ATTEMPTS || this.#failures % REMINDER_ATTEMPTS === 0;
    if (isReported) logger.warn(`${(error as Error).message} Retrying until it succeeds.`);
    await sleep(clock, Math.min(backoffMs(policy, this.#failures), maxMs), signal);
  }

  onSuccess(): void {
    if (this.#failures >= SILENT_ATTEMPTS) this.#options.logger.info('The database is reachable again.');
    this.#failures = 0;
  }
}
