// Errors about calls that can't be right: what was passed, and when it was called.
import { errorOf } from './errors-base.js';

/**
 * An argument, an option or a setting can't be used. `argument` is its path, such as `options.timeoutMS` or
 * `filter.status[2]`; the message says what it holds and what it should hold.
 */
export class DBOSInvalidArgumentError extends errorOf('DBOSInvalidArgumentError', 'INVALID_ARGUMENT') {
  constructor(
    message: string,
    readonly argument?: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The call has to come before DBOS.launch(), or after the end of DBOS.shutdown(). */
export class DBOSAlreadyLaunchedError extends errorOf('DBOSAlreadyLaunchedError', 'ALREADY_LAUNCHED') {}

/** The queue, schedule or version belongs to another application of the same system database. */
export class OwnedByAnotherApplicationError extends errorOf(
  'OwnedByAnotherApplicationError',
  'OWNED_BY_ANOTHER_APPLICATION',
) {}

/** No application version has this name. */
export class VersionNotFoundError extends errorOf('VersionNotFoundError', 'VERSION_NOT_FOUND') {}

/** A value can't be serialized, or its serializer or recipe misbehaves. */
export class SerializationError extends errorOf('SerializationError', 'SERIALIZATION_FAILED') {}
