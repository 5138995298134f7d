// Some servers that speak Postgres's protocol have no advisory locks.
import { DatabaseStatementError } from '../../model/errors/database-errors.js';
import { sqlState } from './postgres-errors.js';

/** The function is missing, or not supported. */
const MISSING = /^(42883|0A000)$/;

/** Whether the error, ours or the driver's, says that the server has no advisory locks. */
export function lacksAdvisoryLocks(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const state = error instanceof DatabaseStatementError ? error.sqlState : sqlState(error);
  return MISSING.test(state ?? '') && error.message.includes('advisory');
}
