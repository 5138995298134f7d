// Errors about an application's configuration, registrations and requests: what is wrong before any workflow runs.
import { DBOSError, hasErrorCode } from './errors-base.js';

export const QueueDedupIDDuplicated = 28;
export const QueryTimeout = 35;
const DATA_VALIDATION_NUMBER = 9;
const DATA_VALIDATION_CODE = 'DATA_VALIDATION';

/** The engine could not be set up or launched. */
export class DBOSInitializationError extends DBOSError {
  static override readonly code = 'INITIALIZATION_FAILED';
  override readonly name = 'DBOSInitializationError';
  override readonly code = DBOSInitializationError.code;

  constructor(
    message: string,
    readonly error?: Error,
    options?: ErrorOptions,
  ) {
    super(message, 3, options ?? (error === undefined ? undefined : { cause: error }));
  }
}

/** The process has loaded another version of the package before. */
export class MixedVersionsError extends DBOSError {
  static override readonly code = 'MIXED_VERSIONS';
  override readonly name = 'MixedVersionsError';
  override readonly code = MixedVersionsError.code;

  constructor(
    readonly loaded: string,
    readonly refused: string,
    options?: ErrorOptions,
  ) {
    super(
      `This process has loaded Everstep ${loaded} and now loads Everstep ${refused}. Their functions and workflows would ` +
        'not find each other. Run `npm ls everstep @dbos-inc/dbos-sdk` to see what depends on which, and make all of it ' +
        'use one version, with "overrides" in package.json if need be.',
      1,
      options,
    );
  }
}

/** A workflow, step, class or queue is not known to this engine. */
export class DBOSNotRegisteredError extends DBOSError {
  static override readonly code = 'NOT_REGISTERED';
  override readonly name = 'DBOSNotRegisteredError';
  override readonly code = DBOSNotRegisteredError.code;

  constructor(operationName: string, fullMessage?: string, options?: ErrorOptions) {
    const message = `Operation (Name: ${operationName}) not registered. Register it before DBOS.launch().`;
    super(fullMessage ?? message, 6, options);
  }
}

/** An argument does not have the declared type or form. */
export class DBOSDataValidationError extends DBOSError {
  static override readonly code = DATA_VALIDATION_CODE;
  override readonly name = 'DBOSDataValidationError';
  override readonly code = DBOSDataValidationError.code;

  constructor(message: string, options?: ErrorOptions) {
    super(message, DATA_VALIDATION_NUMBER, options);
  }
}

/** True for a DBOSDataValidationError, also one that was stored and read back. */
export function isDataValidationError(error: unknown): boolean {
  return hasErrorCode(error, DATA_VALIDATION_NUMBER, DATA_VALIDATION_CODE);
}

/** The authenticated user may not call this function. */
export class DBOSNotAuthorizedError extends DBOSError {
  static override readonly code = 'NOT_AUTHORIZED';
  override readonly name = 'DBOSNotAuthorizedError';
  override readonly code = DBOSNotAuthorizedError.code;

  constructor(
    message: string,
    readonly status: number = 403,
    options?: ErrorOptions,
  ) {
    super(message, 12, options);
  }
}

/** A configuration key holds a value of the wrong type. */
export class DBOSConfigKeyTypeError extends DBOSError {
  static override readonly code = 'CONFIG_KEY_TYPE';
  override readonly name = 'DBOSConfigKeyTypeError';
  override readonly code = DBOSConfigKeyTypeError.code;

  constructor(configKey: string, expectedType: string, actualType: string, options?: ErrorOptions) {
    super(`Configuration key "${configKey}" should be of type ${expectedType}, but is ${actualType}.`, 14, options);
  }
}

/** The application's code could not be loaded. */
export class DBOSFailLoadOperationsError extends DBOSError {
  static override readonly code = 'LOAD_OPERATIONS_FAILED';
  override readonly name = 'DBOSFailLoadOperationsError';
  override readonly code = DBOSFailLoadOperationsError.code;

  constructor(message: string, options?: ErrorOptions) {
    super(message, 17, options);
  }
}

/** The engine was used before it was launched or after it was shut down. */
export class DBOSExecutorNotInitializedError extends DBOSError {
  static override readonly code = 'EXECUTOR_NOT_INITIALIZED';
  override readonly name = 'DBOSExecutorNotInitializedError';
  override readonly code = DBOSExecutorNotInitializedError.code;

  constructor(message = 'DBOS not initialized. Call and await DBOS.launch() first.', options?: ErrorOptions) {
    super(message, 20, options);
  }

  /** For calls between the beginning of a shutdown and its end. */
  static duringShutdown(reason: string): DBOSExecutorNotInitializedError {
    return new DBOSExecutorNotInitializedError(
      `DBOS is shutting down: this process no longer accepts calls for ${reason}. Call another process, or this one after its next launch.`,
    );
  }
}

/** Two registrations claim one name, or one comes after the launch. */
export class DBOSConflictingRegistrationError extends DBOSError {
  static override readonly code = 'CONFLICTING_REGISTRATION';
  override readonly name = 'DBOSConflictingRegistrationError';
  override readonly code = DBOSConflictingRegistrationError.code;

  constructor(message: string, options?: ErrorOptions) {
    super(message, 25, options);
  }
}

/** The queue holds a workflow with the same deduplication ID. `workflowID` is the one that was turned away. */
export class DBOSQueueDuplicatedError extends DBOSError {
  static override readonly code = 'QUEUE_DUPLICATED';
  override readonly name = 'DBOSQueueDuplicatedError';
  override readonly code = DBOSQueueDuplicatedError.code;

  constructor(
    readonly workflowID: string,
    readonly queue: string,
    readonly deduplicationID: string,
    options?: ErrorOptions,
  ) {
    super(
      `Queue "${queue}" already holds a workflow with deduplication ID "${deduplicationID}", ` +
        `so workflow "${workflowID}" was not enqueued. ` +
        `Wait until that one is done, or enqueue with duplicationPolicy: 'return-existing'.`,
      QueueDedupIDDuplicated,
      options,
    );
  }
}

/** A priority is outside the allowed range. */
export class DBOSInvalidQueuePriorityError extends DBOSError {
  static override readonly code = 'INVALID_QUEUE_PRIORITY';
  override readonly name = 'DBOSInvalidQueuePriorityError';
  override readonly code = DBOSInvalidQueuePriorityError.code;

  constructor(priority: number | string, min: number, max: number, options?: ErrorOptions) {
    super(`Invalid priority ${priority}. Use an integer from ${min} to ${max}.`, 29, options);
  }
}

/** The settings of a queue contradict each other, or the queue cannot be used in that way. */
export class InvalidQueueError extends DBOSError {
  static override readonly code = 'INVALID_QUEUE';
  override readonly name = 'InvalidQueueError';
  override readonly code = InvalidQueueError.code;

  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}

/** A query of workflows or steps took too long and was stopped by the database. */
export class DBOSQueryTimeoutError extends DBOSError {
  static override readonly code = 'QUERY_TIMEOUT';
  override readonly name = 'DBOSQueryTimeoutError';
  override readonly code = DBOSQueryTimeoutError.code;

  constructor(
    readonly timeoutMS: number,
    options?: ErrorOptions,
  ) {
    super(
      `The query did not finish within ${timeoutMS}ms and was stopped. ` +
        `Narrow its filter or raise observabilityQueryTimeoutMs.`,
      QueryTimeout,
      options,
    );
  }
}
