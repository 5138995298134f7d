// Errors about calls that can't be right: what was passed, and when it was called.
import { DBOSError } from './errors-base.js';

/**
 * An argument, an option or a setting can't be used. `argument` is its path, such as `options.timeoutMS` or
 * `filter.status[2]`; the message says what it holds and what it should hold.
 */
export class DBOSInvalidArgumentError extends DBOSError {
  static override readonly code = 'INVALID_ARGUMENT';
  override readonly name = 'DBOSInvalidArgumentError';
  override readonly code = DBOSInvalidArgumentError.code;

  constructor(
    message: string,
    readonly argument?: string,
    options?: ErrorOptions,
  ) {
    super(message, 1, options);
  }
}

/** The call has to come before DBOS.launch(), or after the end of DBOS.shutdown(). */
export class DBOSAlreadyLaunchedError extends DBOSError {
  static override readonly code = 'ALREADY_LAUNCHED';
  override readonly name = 'DBOSAlreadyLaunchedError';
  override readonly code = DBOSAlreadyLaunchedError.code;

  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}

/** The queue, schedule or version belongs to another application of the same system database. */
export class OwnedByAnotherApplicationError extends DBOSError {
  static override readonly code = 'OWNED_BY_ANOTHER_APPLICATION';
  override readonly name = 'OwnedByAnotherApplicationError';
  override readonly code = OwnedByAnotherApplicationError.code;

  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}

/** No application version has this name. */
export class VersionNotFoundError extends DBOSError {
  static override readonly code = 'VERSION_NOT_FOUND';
  override readonly name = 'VersionNotFoundError';
  override readonly code = VersionNotFoundError.code;

  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}

/** A value can't be serialized, or its serializer or recipe misbehaves. */
export class SerializationError extends DBOSError {
  static override readonly code = 'SERIALIZATION_FAILED';
  override readonly name = 'SerializationError';
  override readonly code = SerializationError.code;

  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}
