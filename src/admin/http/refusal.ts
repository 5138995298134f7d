// Answers that say no: what a request is refused with, and what an error of the library means to a client. What went
// wrong inside is logged and not told.
import type { DLogger } from '../../base/log.js';
import { DBOSError } from '../../model/errors/errors.js';
import { type Check, messageOf } from '../../model/validation/validation.js';

/** A request that is not served. The message is for the client. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

export function invalid(message: string): Refusal {
  return new Refusal(400, 'INVALID_REQUEST', message);
}

/** The value, if the check accepts it. `subject` is what the message calls the value as a whole. */
export function readRequest<T>(check: Check<T>, value: unknown, subject: string): T {
  const problem = check.find(value);
  if (problem !== undefined) throw invalid(messageOf(problem, problem.at === '' ? subject : ''));
  // The check has accepted it.
  return value as T;
}

export function notFound(message: string): Refusal {
  return new Refusal(404, 'NOT_FOUND', message);
}

/** Errors of the library that are not the client's fault, or not in the way of a wrong argument. */
const STATUSES: Readonly<Record<string, number>> = {
  NON_EXISTENT_WORKFLOW: 404,
  SCHEDULE_NOT_FOUND: 404,
  VERSION_NOT_FOUND: 404,
  SCHEDULE_EXISTS: 409,
  OWNED_BY_ANOTHER_APPLICATION: 409,
  QUEUE_DUPLICATED: 409,
  WORKFLOW_ID_IN_USE: 409,
  CONFLICTING_WORKFLOW: 409,
  WORKFLOW_CONFLICT: 409,
  INVALID_WORKFLOW_TRANSITION: 409,
  QUERY_TIMEOUT: 504,
  EXECUTOR_NOT_INITIALIZED: 503,
  DATABASE_UNAVAILABLE: 503,
  DATABASE_BUSY: 503,
  DATABASE_CLOSED: 503,
  DATABASE_ACCESS: 500,
  DATABASE_FULL: 500,
  DATABASE_CORRUPT: 500,
  DATABASE_STATEMENT: 500,
  COMMIT_UNKNOWN: 500,
  UNREADABLE_VALUE: 500,
  SERIALIZATION_FAILED: 500,
};

/** Messages of the database may hold addresses and statements. */
const PUBLIC_MESSAGES: Readonly<Record<number, string>> = {
  500: 'Internal error. See the log of the process.',
  503: 'The system database cannot be reached, or the process is not ready. Try again later.',
};

/** The refusal that an error amounts to. Errors that are not told are logged. */
export function refusalOf(error: unknown, logger: DLogger): Refusal {
  if (error instanceof Refusal) return error;
  const status = error instanceof DBOSError ? (STATUSES[error.code] ?? 400) : 500;
  const code = error instanceof DBOSError ? error.code : 'INTERNAL';
  if (status === 500) logger.error(error);
  return new Refusal(status, code, PUBLIC_MESSAGES[status] ?? (error as Error).message);
}
