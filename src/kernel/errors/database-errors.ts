// What can go wrong between the engine and its database. The drivers and the codec find out what happened and
// compose the message, which says it and what to do next; the driver's own error travels as `cause`.
import { errorOf } from './errors-base.js';

/** A database URL is of neither kind, or lacks a part. */
export class InvalidDatabaseURLError extends errorOf('InvalidDatabaseURLError', 'INVALID_DATABASE_URL') {}

/** A schema name that cannot be used. */
export class InvalidSchemaNameError extends errorOf('InvalidSchemaNameError', 'INVALID_SCHEMA_NAME') {}

/** The server or the file cannot be reached. */
export class DatabaseUnavailableError extends errorOf('DatabaseUnavailableError', 'DATABASE_UNAVAILABLE') {}

/** The login was refused, or a right is missing. */
export class DatabaseAccessError extends errorOf('DatabaseAccessError', 'DATABASE_ACCESS') {}

/** Another process holds the lock on the database. */
export class DatabaseBusyError extends errorOf('DatabaseBusyError', 'DATABASE_BUSY') {}

/** The disk of the database is full. */
export class DatabaseFullError extends errorOf('DatabaseFullError', 'DATABASE_FULL') {}

/** The file is damaged or is no database. */
export class DatabaseCorruptError extends errorOf('DatabaseCorruptError', 'DATABASE_CORRUPT') {}

/** SQLite has a bug by which several processes can corrupt the file, and another one has it open. */
export class AffectedSqliteError extends errorOf('AffectedSqliteError', 'AFFECTED_SQLITE') {}

/** A connection to the file of the system database belongs to another copy of SQLite in this process. */
export class SqliteCopiesError extends errorOf('SqliteCopiesError', 'SQLITE_COPIES') {}

/** The database was used after it was closed. */
export class DatabaseClosedError extends errorOf('DatabaseClosedError', 'DATABASE_CLOSED') {}

/** Any other failing statement. `sqlState` is Postgres's five characters, or SQLite's error name. */
export class DatabaseStatementError extends errorOf('DatabaseStatementError', 'DATABASE_STATEMENT') {
  readonly sqlState?: string;

  constructor(message: string, options?: ErrorOptions & { readonly sqlState?: string }) {
    super(message, options);
    this.sqlState = options?.sqlState;
  }
}

/** The connection was lost while a commit was under way: it may have happened or not. */
export class CommitUnknownError extends errorOf('CommitUnknownError', 'COMMIT_UNKNOWN') {}

/** A guarded write had no effect, and nothing that the guard asks for is in its way. */
export class UnexplainedRefusalError extends errorOf('UnexplainedRefusalError', 'UNEXPLAINED_REFUSAL') {
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
export class SqliteDriverMissingError extends errorOf('SqliteDriverMissingError', 'SQLITE_DRIVER_MISSING') {
  constructor(message = SQLITE_DRIVER_MISSING_MESSAGE, options?: ErrorOptions) {
    super(message, options);
  }
}

/** The tables could not be brought to the version that this release needs. */
export class MigrationError extends errorOf('MigrationError', 'MIGRATION_FAILED') {}

/** A verb needs tables or columns that only Everstep's migrations create, on a database that DBOS has made. */
export class EverstepTablesMissingError extends errorOf('EverstepTablesMissingError', 'EVERSTEP_TABLES_MISSING') {
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
export class UnreadableValueError extends errorOf('UnreadableValueError', 'UNREADABLE_VALUE') {
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
export class PartitioningError extends errorOf('PartitioningError', 'PARTITIONING') {}
