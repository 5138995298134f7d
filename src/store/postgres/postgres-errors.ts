// Errors of `pg` and of the server as ours. What matters most is whether a statement can have taken effect:
// a server that answers ERROR has undone it, a connection that breaks off has said nothing.
import { withoutPasswords } from '../../base/url.js';
import {
  CommitUnknownError,
  DatabaseAccessError,
  DatabaseFullError,
  DatabaseStatementError,
  DatabaseUnavailableError,
} from '../../model/errors/database-errors.js';
import { DBOSError } from '../../model/errors/errors.js';

/** What was going on when the error came: `connect` and `read` cannot have changed anything. */
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

/** Our error for an error of `pg`; errors of other origin are returned as they are. */
export function translatePostgresError(error: unknown, phase: Phase, where: string): unknown {
  if (error instanceof DBOSError || !(error instanceof Error)) return error;
  const state = sqlState(error);
  const { severity, detail } = error as PgError;
  const reason = withoutPasswords([error.message || (error as PgError).code, detail].filter(Boolean).join(': '));
  const options = { cause: error };
  if (state !== undefined && isAccessState(state)) {
    return new DatabaseAccessError(
      `Postgres at ${where} refused: ${reason}. Check user, password and the rights of the role on database and schema.`,
      options,
    );
  }
  if (state === '53100') {
    return new DatabaseFullError(
      `The disk of Postgres at ${where} is full: ${reason}. Work goes on when there is room.`,
      options,
    );
  }
  if (state === '3D000') {
    return new DatabaseUnavailableError(
      `The database at ${where} does not exist: ${reason}. Create it, or run migrations with a role that may.`,
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
      `The connection to Postgres at ${where} broke while a change was under way: ${reason}. It may or may not be stored.`,
      options,
    );
  }
  return new DatabaseUnavailableError(
    `Postgres at ${where} cannot be reached: ${reason}. Check that the server runs and that host and port are right.`,
    options,
  );
}

/** Bad login, no such role, no rights. */
function isAccessState(state: string): boolean {
  return state.startsWith('28') || state === '42501';
}
