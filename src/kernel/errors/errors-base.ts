// The root of the error catalogue. The classes themselves stand in the other `errors-*.ts` files and in
// `database-errors.ts`; everybody imports them from `errors.ts`.
import { recognizeCopiesByCode } from '../base/copies.js';

/**
 * The base of every error that Everstep raises itself.
 *
 * `code` names the kind of error and `dbosErrorCode` is its number. Both are own fields, so they are stored with the
 * error, and readers without its class have them, too.
 */
export class DBOSError extends Error {
  /** The same as that of the instances. By it, `instanceof` recognises the class in another copy of the package. */
  static readonly code: string = 'DBOS_ERROR';
  override readonly name: string = 'DBOSError';
  readonly code: string = DBOSError.code;
  readonly dbosErrorCode: number;

  static {
    recognizeCopiesByCode(this);
  }

  constructor(message: string, dbosErrorCode = 1, options?: ErrorOptions) {
    super(message, options);
    this.dbosErrorCode = dbosErrorCode;
  }
}

/** An error of the catalogue, with what tells it from the others. */
export interface CodedError<Name extends string, Code extends string> extends DBOSError {
  readonly name: Name;
  readonly code: Code;
}

export interface CodedErrorClass<Name extends string, Code extends string> {
  new (message: string, options?: ErrorOptions): CodedError<Name, Code>;
  readonly code: Code;
}

/** What a class of the catalogue extends. Its name is given as well, because minifiers change those of classes. */
export function errorOf<Name extends string, Code extends string>(
  name: Name,
  code: Code,
  dbosErrorCode = 1,
): CodedErrorClass<Name, Code> {
  return class extends DBOSError {
    static override readonly code = code;
    override readonly name = name;
    override readonly code = code;

    constructor(message: string, options?: ErrorOptions) {
      super(message, dbosErrorCode, options);
    }
  };
}

/** The number of an error, or undefined for one that is not of this catalogue. Works for errors read back too. */
export function getDBOSErrorCode(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null || !('dbosErrorCode' in error)) return undefined;
  return typeof error.dbosErrorCode === 'number' ? error.dbosErrorCode : undefined;
}

/** True when an error has this number, or, after a portable round trip that drops the number, this code. */
export function hasErrorCode(error: unknown, dbosErrorCode: number, code: string): boolean {
  if (getDBOSErrorCode(error) === dbosErrorCode) return true;
  return typeof error === 'object' && error !== null && 'code' in error && error.code === code;
}
