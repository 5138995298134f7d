// Error responses: how a request is refused, and how the library's errors map to HTTP. Internal errors are logged but
// not sent to the client.
import type { DLogger } from '../../../kernel/base/log.js';
import { DBOSError } from '../../../kernel/errors/errors.js';
import { type Check, messageOf } from '../../../kernel/check/validation.js';

/** A refused request. The message goes to the client. */
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

/** The value, if the check accepts it. `subject` names the value as a whole in the message. */
export function readRequest<T>(check: Check<T>, value: unknown, subject: string): T {
  const problem = check.find(value);
  if (problem !== undefined) throw invalid(messageOf(problem, problem.at === '' ? subject : ''));
  // The check has accepted it.
  return value as T;
}

export function notFound(message: string): Refusal {
  return new Refusal(404, 'NOT_FOUND', message);
}

/** Statuses of the library's errors. All others are 400. */
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
  /** Only values of the client are encoded here. */
  SERIALIZATION_FAILED: 422,
};

/** Database messages may contain addresses and statements, so clients get these instead. */
const PUBLIC_MESSAGES: Readonly<Record<number, string>> = {
  500: 'Internal error. See the log of the process.',
  503: 'The system database is unavailable, or the process is not ready. Try again later.',
};

/** The refusal for an error. Logs internal errors. */
export function refusalOf(error: unknown, logger: DLogger): Refusal {
  if (error instanceof Refusal) return error;
  const status = error instanceof DBOSError ? (STATUSES[error.code] ?? 400) : 500;
  const code = error instanceof DBOSError ? error.code : 'INTERNAL';
  if (status === 500) logger.error(error);
  return new Refusal(status, code, PUBLIC_MESSAGES[status] ?? (error as Error).message);
}
