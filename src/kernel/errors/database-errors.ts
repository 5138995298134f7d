// What can go wrong between the engine and its database. The drivers and the codec find out what happened and
// compose the message, which says it and what to do next; the driver's own error travels as `cause`.
import { DBOSError } from './errors-base.js';

/** The base of the database errors, so that their constructors agree. */
abstract class DatabaseError extends DBOSError {
  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}

/** A database URL is of neither kind, or lacks a part. */
export class InvalidDatabaseURLError extends DatabaseError {
  static override readonly code = 'INVALID_DATABASE_URL';
  override readonly name = 'InvalidDatabaseURLError';
  override readonly code = InvalidDatabaseURLError.code;
}

/** A schema name that cannot be used. */
export class InvalidSchemaNameError extends DatabaseError {
  static override readonly code = 'INVALID_SCHEMA_NAME';
  override readonly name = 'InvalidSchemaNameError';
  override readonly code = InvalidSchemaNameError.code;
}

/** The server or the file cannot be reached. */
export class DatabaseUnavailableError extends DatabaseError {
  static override readonly code = 'DATABASE_UNAVAILABLE';
  override readonly name = 'DatabaseUnavailableError';
  override readonly code = DatabaseUnavailableError.code;
}

/** The login was refused, or a right is missing. */
export class DatabaseAccessError extends DatabaseError {
  static override readonly code = 'DATABASE_ACCESS';
  override readonly name = 'DatabaseAccessError';
  override readonly code = DatabaseAccessError.code;
}

/** Another process holds the lock on the database. */
export class DatabaseBusyError extends DatabaseError {
  static override readonly code = 'DATABASE_BUSY';
  override readonly name = 'DatabaseBusyError';
  override readonly code = DatabaseBusyError.code;
}

/** The disk of the database is full. */
export class DatabaseFullError extends DatabaseError {
  static override readonly code = 'DATABASE_FULL';
  override readonly name = 'DatabaseFullError';
  override readonly code = DatabaseFullError.code;
}

/** The file is damaged or is no database. */
export class DatabaseCorruptError extends DatabaseError {
  static override readonly code = 'DATABASE_CORRUPT';
  override readonly name = 'DatabaseCorruptError';
  override readonly code = DatabaseCorruptError.code;
}

/** SQLite has a bug by which several processes can corrupt the file, and another one has it open. */
export class AffectedSqliteError extends DatabaseError {
  static override readonly code = 'AFFECTED_SQLITE';
  override readonly name = 'AffectedSqliteError';
  override readonly code = AffectedSqliteError.code;
}

/** A connection to the file of the system database belongs to another copy of SQLite in this process. */
export class SqliteCopiesError extends DatabaseError {
  static override readonly code = 'SQLITE_COPIES';
  override readonly name = 'SqliteCopiesError';
  override readonly code = SqliteCopiesError.code;
}

/** The database was used after it was closed. */
export class DatabaseClosedError extends DatabaseError {
  static override readonly code = 'DATABASE_CLOSED';
  override readonly name = 'DatabaseClosedError';
  override readonly code = DatabaseClosedError.code;
}

/** Any other failing statement. `sqlState` is Postgres's five characters, or SQLite's error name. */
export class DatabaseStatementError extends DatabaseError {
  static override readonly code = 'DATABASE_STATEMENT';
  override readonly name = 'DatabaseStatementError';
  override readonly code = DatabaseStatementError.code;
  readonly sqlState?: string;

  constructor(message: string, options?: ErrorOptions & { readonly sqlState?: string }) {
    super(message, options);
    this.sqlState = options?.sqlState;
  }
}

/** The connection was lost while a commit was under way: it may have happened or not. */
export class CommitUnknownError extends DatabaseError {
  static override readonly code = 'COMMIT_UNKNOWN';
  override readonly name = 'CommitUnknownError';
  override readonly code = CommitUnknownError.code;
}

/** A guarded write had no effect, and nothing that the guard asks for is in its way. */
export class UnexplainedRefusalError extends DatabaseError {
  static override readonly code = 'UNEXPLAINED_REFUSAL';
  override readonly name = 'UnexplainedRefusalError';
  override readonly code = UnexplainedRefusalError.code;

  /** `what` completes "the database refused …". */
  constructor(what: string) {
    super(
      `The database refused ${what} several times, and no reason can be found. ` +
        'Check the triggers, rules and policies on its tables.',
    );
  }
}

const SQLITE_DRIVER_MISSING_MESSAGE =
  'No SQLite driver is available: this version of Node has none built in and better-sqlite3 is not installed. ' +
  'Run `npm install better-sqlite3`, or use Node 22.13 or later.';

/** This version of Node has no SQLite of its own, and the package that brings one is not installed. */
export class SqliteDriverMissingError extends DatabaseError {
  static override readonly code = 'SQLITE_DRIVER_MISSING';
  override readonly name = 'SqliteDriverMissingError';
  override readonly code = SqliteDriverMissingError.code;

  constructor(message = SQLITE_DRIVER_MISSING_MESSAGE, options?: ErrorOptions) {
    super(message, options);
  }
}

/** The tables could not be brought to the version that this release needs. */
export class MigrationError extends DatabaseError {
  static override readonly code = 'MIGRATION_FAILED';
  override readonly name = 'MigrationError';
  override readonly code = MigrationError.code;
}

/** A verb needs tables or columns that only Everstep's migrations create, on a database that DBOS has made. */
export class EverstepTablesMissingError extends DatabaseError {
  static override readonly code = 'EVERSTEP_TABLES_MISSING';
  override readonly name = 'EverstepTablesMissingError';
  override readonly code = EverstepTablesMissingError.code;

  constructor(where: string, options?: ErrorOptions) {
    super(
      `The system database at ${where} was made by DBOS and lacks tables of Everstep that this needs. ` +
        'Run `npx everstep migrate`: DBOS keeps working on it.',
      options,
    );
  }
}

/** How much of an unreadable text an error may show: enough to recognise it, too little to leak it. */
const SHOWN_TEXT_MAX = 80;

/** A stored text is no valid text of the format it is said to have. */
export class UnreadableValueError extends DatabaseError {
  static override readonly code = 'UNREADABLE_VALUE';
  override readonly name = 'UnreadableValueError';
  override readonly code = UnreadableValueError.code;

  /** `reason` goes into the message and must not quote the text; the `cause` may. */
  constructor(
    readonly format: string,
    text: string,
    options?: ErrorOptions & { readonly reason?: string },
  ) {
    const start = JSON.stringify(text.slice(0, SHOWN_TEXT_MAX));
    super(
      `A stored value that begins with ${start} cannot be read as ${format}: ${options?.reason ?? 'it is malformed'}. ` +
        `Check that the application that wrote it uses the same serializer and the same recipes.`,
      options,
    );
  }
}

/** The partitions of a table cannot be changed. */
export class PartitioningError extends DatabaseError {
  static override readonly code = 'PARTITIONING';
  override readonly name = 'PartitioningError';
  override readonly code = PartitioningError.code;
}
