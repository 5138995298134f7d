// Translates errors of `pg` and the server to ours. What matters most is whether a statement can have taken effect: after an
// ERROR response it was undone; after a lost connection nothing is known.
import { withoutPasswords } from '../../kernel/base/url.js';
import {
  CommitUnknownError,
  DatabaseAccessError,
  DatabaseFullError,
  DatabaseStatementError,
  DatabaseUnavailableError,
} from '../../kernel/errors/database-errors.js';
import { DBOSError } from '../../kernel/errors/errors.js';

/** What the error interrupted: `connect` and `read` cannot have changed anything. */
export type Phase = 'connect' | 'read' | 'write';

const SOCKET_CODES = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'EAI_AGAIN',
  'ENOTFOUND',
  'ENOENT',
  'EPIPE',
]);
const READ_ONLY = '25006';
const CONNECTION_MESSAGE =
  /terminat|timeout|not queryable|connection (error|ended|closed)|Client was closed|Client has encountered|SSL connection/i;

interface PgError extends Error {
  readonly code?: string;
  readonly severity?: string;
  readonly detail?: string;
}

export function sqlState(error: unknown): string | undefined {
  const code = (error as PgError | undefined)?.code;
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !SOCKET_CODES.has(code) ? code : undefined;
}

/** Our error for an error of `pg`; other errors are returned unchanged. */
export function translatePostgresError(error: unknown, phase: Phase, where: string): unknown {
  if (error instanceof DBOSError || !(error instanceof Error)) return error;
  const state = sqlState(error);
  const { severity, detail } = error as PgError;
  const reason = withoutPasswords([error.message || (error as PgError).code, detail].filter(Boolean).join(': '));
  const options = { cause: error };
  if (state !== undefined && isAccessState(state)) {
    return new DatabaseAccessError(
      `Postgres at ${where} denied access: ${reason}. Check the user, the password, and the role's privileges on the ` +
        'database and schema.',
      options,
    );
  }
  if (state === '53100') {
    return new DatabaseFullError(
      `The disk of Postgres at ${where} is full: ${reason}. Free some space; work then continues on its own.`,
      options,
    );
  }
  if (state === '3D000') {
    return new DatabaseUnavailableError(
      `The database at ${where} does not exist: ${reason}. Create it, or run migrations with a role that may create it.`,
      options,
    );
  }
  const isConnectionLost =
    state === undefined
      ? SOCKET_CODES.has((error as PgError).code ?? '') || CONNECTION_MESSAGE.test(error.message)
      : severity === 'FATAL' ||
        severity === 'PANIC' ||
        /^(08|57P0)/.test(state) ||
        state === '25P03' ||
        state === '40003';
  if (!isConnectionLost) {
    if (state === undefined) return error;
    return new DatabaseStatementError(`A statement failed on Postgres at ${where}: ${reason} (${state})`, {
      ...options,
      sqlState: state,
    });
  }
  if (phase === 'write') {
    return new CommitUnknownError(
      `The connection to Postgres at ${where} was lost during a write: ${reason}. The change may or may not be stored.`,
      options,
    );
  }
  return new DatabaseUnavailableError(
    `Cannot reach Postgres at ${where}: ${reason}. Check that the server is running and that host and port are correct.`,
    options,
  );
}

/** Failed login, unknown role, or missing privilege. */
function isAccessState(state: string): boolean {
  return state.startsWith('28') || state === '42501';
}

/** During a failover: the connection leads to a server that is not the primary (any more). */
export function isReadOnly(error: unknown): boolean {
  return error instanceof DatabaseStatementError && error.sqlState === READ_ONLY;
}

const NO_SUCH_FUNCTION = /^(42883|0A000)$/;

/** Whether the error, ours or the driver's, says that the server has no advisory locks. */
export function lacksAdvisoryLocks(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const state = error instanceof DatabaseStatementError ? error.sqlState : sqlState(error);
  return NO_SUCH_FUNCTION.test(state ?? '') && error.message.includes('advisory');
}

/** Whether the server does not take the statement: a syntax error, something unknown, a missing privilege, no support. */
export function lacksStatement(error: unknown): boolean {
  return /^(42|0A)/.test(sqlState(error) ?? '');
}

/** As PgBouncer words it. */
export function refusesStartupOptions(error: unknown): boolean {
  return error instanceof Error && /unsupported startup parameter/.test(error.message);
}

export function isConnectionLost(error: unknown): boolean {
  return error instanceof CommitUnknownError || error instanceof DatabaseUnavailableError;
}
