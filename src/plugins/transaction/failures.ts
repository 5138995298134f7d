// Classifies the errors of database clients. Clients wrap the errors of their drivers, so codes are looked up along the
// chain of causes.
import {
  DatabaseBusyError,
  DatabaseUnavailableError,
  CommitUnknownError,
  DatabaseStatementError,
  DBOSExecutorNotInitializedError,
  DBOSStepAlreadyRecordedError,
  SerializationError,
} from '../../kernel/errors/errors.js';
import { REFUSAL } from '../../kernel/sql/refusal.js';

const CHAIN_MAX = 10;
/** Prisma's own codes look like those of Postgres, where only class P0 starts with a P. */
const SQL_STATE = /^(?!P[1-9])[0-9A-Z]{5}$/;
const SQLITE_BUSY = /^SQLITE_(BUSY|LOCKED)/;
/** Prisma's code for a write conflict or deadlock. */
const PRISMA_CONFLICT = 'P2034';

/** Connection failures, a server that is shutting down or starting up, too many connections. */
const LOST_STATE = /^(08...|57P0[1-5]|53300)$/;
const LOST_CODE =
  /^(ECONNRESET|ECONNREFUSED|ECONNABORTED|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|EAI_AGAIN|EPIPE|CONNECTION_CLOSED|CONNECTION_ENDED|CONNECTION_DESTROYED|CONNECT_TIMEOUT|P1001|P1002|P1008|P1017|P2024)$/;
const CLOSED_CODE = /^CONNECTION_(CLOSED|ENDED|DESTROYED)$/;
const LOST_MESSAGE =
  /connection (terminated|error|ended|closed)|terminating connection|not queryable|already released|client was closed|server has closed the connection|can't reach database server|timeout exceeded when trying to connect|unable to acquire a connection/i;

/**
 * Conditions of the database that pass: it lacks disk, memory or connections, cannot read its files, stops, or is a standby
 * during a failover. 53400 is a limit of the session's own.
 */
const PASSING_STATE = /^(53[0-3]..|57P..|58...|25006|40000|40003)$/;
/** The same for BEGIN, our own statements and COMMIT. In the function, the first two may be wanted: it can set timeouts. */
const PASSING_STATE_AROUND = /^(57014|55P03|28...)$/;
const PASSING_SQLITE = /^SQLITE_(FULL|IOERR|NOMEM|CANTOPEN|PROTOCOL)/;

/** An error and its causes, outermost first. */
function* chainOf(error: unknown): Generator<Record<string, unknown>> {
  let found = error;
  for (let depth = 0; depth < CHAIN_MAX && typeof found === 'object' && found !== null; depth += 1) {
    const link = found as Record<string, unknown>;
    yield link;
    // Prisma keeps the driver's error in `meta`.
    const meta = link['meta'] as Record<string, unknown> | undefined;
    if (typeof meta?.['code'] === 'string') yield meta;
    found = link['cause'] ?? meta?.['driverAdapterError'];
  }
}

/** The SQLSTATE of the error or one of its causes; undefined if there is none. */
export function getPGErrorCode(error: unknown): string | undefined {
  for (const { code, originalCode, sqlState } of chainOf(error)) {
    for (const candidate of [code, originalCode, sqlState]) {
      if (typeof candidate === 'string' && SQL_STATE.test(candidate) && !LOST_CODE.test(candidate)) return candidate;
    }
  }
  return undefined;
}

/** True if a statement of ours failed on purpose, because it must not write. */
export function isRefusal(error: unknown): boolean {
  for (const { message } of chainOf(error)) if (typeof message === 'string' && message.includes(REFUSAL)) return true;
  return false;
}

/** True for a serialization failure: the transaction can be retried. */
export function isPGRetriableTransactionError(error: unknown): boolean {
  return getPGErrorCode(error) === '40001';
}

/** True for a violation of a primary key or unique index. */
export function isPGKeyConflictError(error: unknown): boolean {
  return getPGErrorCode(error) === '23505';
}

/** The tables in which the outcomes of steps are recorded. */
const RECORD_TABLES = new Set(['transaction_completion', 'operation_outputs']);

/**
 * True if the step has a record. A violation in another table is the function's own: a deferred constraint fails at COMMIT,
 * which may share a round trip with the record.
 */
export function isRecordConflict(error: unknown): boolean {
  if (!isPGKeyConflictError(error)) return false;
  for (const { table } of chainOf(error)) if (typeof table === 'string') return RECORD_TABLES.has(table);
  return true;
}

/** True for a statement in a transaction that an earlier failure has aborted. */
export function isPGFailedSqlTransactionError(error: unknown): boolean {
  return getPGErrorCode(error) === '25P02';
}

/** The transaction was rolled back because of a concurrent one, and can be retried. */
export function isConflict(error: unknown): boolean {
  const state = getPGErrorCode(error);
  if (state !== undefined) return state === '40001' || state === '40P01';
  for (const { code } of chainOf(error)) {
    if (typeof code === 'string' && (SQLITE_BUSY.test(code) || code === PRISMA_CONFLICT)) return true;
  }
  return false;
}

/** The connection is lost, or there is none. During COMMIT, the transaction may or may not have committed. */
export function isConnectionFailure(error: unknown): boolean {
  const state = getPGErrorCode(error);
  if (state !== undefined) return LOST_STATE.test(state);
  for (const { code, message } of chainOf(error)) {
    if (typeof code === 'string' && LOST_CODE.test(code)) return true;
    if (typeof message === 'string' && LOST_MESSAGE.test(message)) return true;
  }
  return false;
}

/** A condition that has nothing to do with what the statement says. `isOwn`: it is a statement of the function. */
export function isPassing(error: unknown, { isOwn }: { readonly isOwn: boolean }): boolean {
  const state = getPGErrorCode(error);
  if (state !== undefined) return PASSING_STATE.test(state) || (!isOwn && PASSING_STATE_AROUND.test(state));
  for (const { code } of chainOf(error)) if (typeof code === 'string' && PASSING_SQLITE.test(code)) return true;
  return false;
}

/** A statement wrote in a transaction that only reads. */
export function isReadOnlyViolation(error: unknown): boolean {
  return getPGErrorCode(error) === '25006';
}

/** True if postgres.js has closed the connection: nothing more may be sent on it. */
export function isClosed(error: unknown): boolean {
  for (const { code } of chainOf(error)) if (typeof code === 'string' && CLOSED_CODE.test(code)) return true;
  return false;
}

/**
 * Whether to retry a failed transaction. A step is also retried after lost connections, passing conditions, outages of the
 * system database and records of a concurrent owner, because it first looks up what an earlier attempt has recorded. Outside of
 * workflows only conflicts are retried: a caller is waiting.
 */
export function shouldRetry(error: unknown, { isStep }: { readonly isStep: boolean }): boolean {
  if (isConflict(error)) return true;
  return isStep && (isConnectionFailure(error) || isPassing(error, { isOwn: false }) || isTransient(error));
}

function isTransient(error: unknown): boolean {
  return (
    error instanceof DBOSStepAlreadyRecordedError ||
    error instanceof DatabaseUnavailableError ||
    error instanceof DatabaseBusyError ||
    error instanceof CommitUnknownError
  );
}

/** An error that counts as a serialization failure, so that the transaction is retried. */
export function conflict(message: string, options?: ErrorOptions): DatabaseStatementError {
  return new DatabaseStatementError(message, { ...options, sqlState: '40001' });
}

/** The function's own error that shows only when its value is recorded or committed. It is the step's outcome. */
export function isOwnFault(error: unknown): boolean {
  return error instanceof SerializationError || isPGFailedSqlTransactionError(error);
}

export function notConnected(source: string): DBOSExecutorNotInitializedError {
  return new DBOSExecutorNotInitializedError(`${source} is not connected. Call DBOS.launch() first.`);
}

export function isMissingTable(error: unknown): boolean {
  const state = getPGErrorCode(error);
  if (state !== undefined) return state === '42P01' || state === '3F000';
  for (const { message } of chainOf(error)) if (/no such table/i.test(String(message))) return true;
  return false;
}
