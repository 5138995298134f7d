// Translates SQLite's result codes to our errors. One library reports the code's name, the other its number.
import {
  DatabaseAccessError,
  DatabaseBusyError,
  DatabaseCorruptError,
  DatabaseFullError,
  DatabaseStatementError,
  DatabaseUnavailableError,
} from '../../kernel/errors/database-errors.js';
import { DBOSError } from '../../kernel/errors/errors.js';

/** Primary result codes by number, as `node:sqlite` reports them. */
const PRIMARY_CODES: Readonly<Record<number, string>> = {
  1: 'SQLITE_ERROR',
  3: 'SQLITE_PERM',
  4: 'SQLITE_ABORT',
  5: 'SQLITE_BUSY',
  6: 'SQLITE_LOCKED',
  7: 'SQLITE_NOMEM',
  8: 'SQLITE_READONLY',
  9: 'SQLITE_INTERRUPT',
  10: 'SQLITE_IOERR',
  11: 'SQLITE_CORRUPT',
  13: 'SQLITE_FULL',
  14: 'SQLITE_CANTOPEN',
  15: 'SQLITE_PROTOCOL',
  17: 'SQLITE_SCHEMA',
  18: 'SQLITE_TOOBIG',
  19: 'SQLITE_CONSTRAINT',
  20: 'SQLITE_MISMATCH',
  23: 'SQLITE_AUTH',
  26: 'SQLITE_NOTADB',
};

/** The name of the result code, such as `SQLITE_BUSY_SNAPSHOT` or `SQLITE_FULL`; empty for other errors. */
export function sqliteCode(error: unknown): string {
  if (typeof error !== 'object' || error === null) return '';
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  if (typeof errcode === 'number') return PRIMARY_CODES[errcode & 0xff] ?? 'SQLITE_ERROR';
  return typeof code === 'string' && code.startsWith('SQLITE_') ? code : '';
}

export function isBusy(error: unknown): boolean {
  return /^SQLITE_(BUSY|LOCKED)/.test(sqliteCode(error));
}

/** Our error for an error of the SQLite library; other errors are returned unchanged. */
export function translateSqliteError(error: unknown, path: string): unknown {
  const code = sqliteCode(error);
  if (code === '' || error instanceof DBOSError) return error;
  const reason = `${(error as Error).message} (${code})`;
  const options = { cause: error };
  if (isBusy(error)) {
    return new DatabaseBusyError(
      `The SQLite file "${path}" is locked by another process: ${reason}. Check that process for a long transaction.`,
      options,
    );
  }
  if (code === 'SQLITE_FULL') {
    return new DatabaseFullError(
      `The disk of "${path}" is full: ${reason}. Free some space; work then continues on its own.`,
      options,
    );
  }
  if (/^SQLITE_(CORRUPT|NOTADB)/.test(code)) {
    return new DatabaseCorruptError(
      `"${path}" is corrupt or not a SQLite database: ${reason}. Check the path, or restore the file from a backup.`,
      options,
    );
  }
  if (/^SQLITE_(CANTOPEN|IOERR)/.test(code)) {
    return new DatabaseUnavailableError(
      `Cannot open, read or write the SQLite file "${path}": ${reason}. ` +
        'Check that its folder exists and that the disk is mounted.',
      options,
    );
  }
  if (/^SQLITE_(READONLY|PERM|AUTH)/.test(code)) {
    return new DatabaseAccessError(
      `Cannot write the SQLite file "${path}": ${reason}. Give the process write access to the file and its folder.`,
      options,
    );
  }
  return new DatabaseStatementError(`A statement failed on "${path}": ${reason}`, { ...options, sqlState: code });
}
