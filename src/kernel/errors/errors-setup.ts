// Errors about an application's configuration, registrations and requests: what is wrong before any workflow runs.
import { errorOf, hasErrorCode } from './errors-base.js';

export const QueueDedupIDDuplicated = 28;
export const QueryTimeout = 35;
const DATA_VALIDATION_NUMBER = 9;
const DATA_VALIDATION_CODE = 'DATA_VALIDATION';

/** The engine could not be set up or launched. */
export class DBOSInitializationError extends errorOf('DBOSInitializationError', 'INITIALIZATION_FAILED', 3) {
  constructor(
    message: string,
    readonly error?: Error,
    options?: ErrorOptions,
  ) {
    super(message, options ?? (error === undefined ? undefined : { cause: error }));
  }
}

/** The process has loaded another version of the package before. */
export class MixedVersionsError extends errorOf('MixedVersionsError', 'MIXED_VERSIONS') {
  constructor(
    readonly loaded: string,
    readonly refused: string,
    options?: ErrorOptions,
  ) {
    super(
      `This process has loaded Everstep ${loaded} and now loads Everstep ${refused}. Their functions and workflows would ` +
        'not find each other. Run `npm ls everstep @dbos-inc/dbos-sdk` to see what depends on which, and make all of it ' +
        'use one version, with "overrides" in package.json if need be.',
      options,
    );
  }
}

/** A workflow, step, class or queue is not known to this engine. */
export class DBOSNotRegisteredError extends errorOf('DBOSNotRegisteredError', 'NOT_REGISTERED', 6) {
  constructor(operationName: string, fullMessage?: string, options?: ErrorOptions) {
    const message = `Operation (Name: ${operationName}) not registered. Register it before DBOS.launch().`;
    super(fullMessage ?? message, options);
  }
}

/** An argument does not have the declared type or form. */
export class DBOSDataValidationError extends errorOf(
  'DBOSDataValidationError',
  DATA_VALIDATION_CODE,
  DATA_VALIDATION_NUMBER,
) {}

/** True for a DBOSDataValidationError, also one that was stored and read back. */
export function isDataValidationError(error: unknown): boolean {
  return hasErrorCode(error, DATA_VALIDATION_NUMBER, DATA_VALIDATION_CODE);
}

/** The authenticated user may not call this function. */
export class DBOSNotAuthorizedError extends errorOf('DBOSNotAuthorizedError', 'NOT_AUTHORIZED', 12) {
  constructor(
    message: string,
    readonly status: number = 403,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** A configuration key holds a value of the wrong type. */
export class DBOSConfigKeyTypeError extends errorOf('DBOSConfigKeyTypeError', 'CONFIG_KEY_TYPE', 14) {
  constructor(configKey: string, expectedType: string, actualType: string, options?: ErrorOptions) {
    super(`Configuration key "${configKey}" should be of type ${expectedType}, but is ${actualType}.`, options);
  }
}

/** The application's code could not be loaded. */
export class DBOSFailLoadOperationsError extends errorOf('DBOSFailLoadOperationsError', 'LOAD_OPERATIONS_FAILED', 17) {}

/** The engine was used before it was launched or after it was shut down. */
export class DBOSExecutorNotInitializedError extends errorOf(
  'DBOSExecutorNotInitializedError',
  'EXECUTOR_NOT_INITIALIZED',
  20,
) {
  constructor(message = 'DBOS not initialized. Call and await DBOS.launch() first.', options?: ErrorOptions) {
    super(message, options);
  }

  /** For calls between the beginning of a shutdown and its end. */
  static duringShutdown(reason: string): DBOSExecutorNotInitializedError {
    return new DBOSExecutorNotInitializedError(
      `DBOS is shutting down: this process no longer accepts calls for ${reason}. Call another process, or this one after its next launch.`,
    );
  }
}

/** Two registrations claim one name, or one comes after the launch. */
export class DBOSConflictingRegistrationError extends errorOf(
  'DBOSConflictingRegistrationError',
  'CONFLICTING_REGISTRATION',
  25,
) {}

/** The queue holds a workflow with the same deduplication ID. `workflowID` is the one that was turned away. */
export class DBOSQueueDuplicatedError extends errorOf(
  'DBOSQueueDuplicatedError',
  'QUEUE_DUPLICATED',
  QueueDedupIDDuplicated,
) {
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
      options,
    );
  }
}

/** A priority is outside the allowed range. */
export class DBOSInvalidQueuePriorityError extends errorOf(
  'DBOSInvalidQueuePriorityError',
  'INVALID_QUEUE_PRIORITY',
  29,
) {
  constructor(priority: number | string, min: number, max: number, options?: ErrorOptions) {
    super(`Invalid priority ${priority}. Use an integer from ${min} to ${max}.`, options);
  }
}

/** The settings of a queue contradict each other, or the queue cannot be used in that way. */
export class InvalidQueueError extends errorOf('InvalidQueueError', 'INVALID_QUEUE') {}

/** A query of workflows or steps took too long and was stopped by the database. */
export class DBOSQueryTimeoutError extends errorOf('DBOSQueryTimeoutError', 'QUERY_TIMEOUT', QueryTimeout) {
  constructor(
    readonly timeoutMS: number,
    options?: ErrorOptions,
  ) {
    super(
      `The query did not finish within ${timeoutMS}ms and was stopped. ` +
        `Narrow its filter or raise observabilityQueryTimeoutMs.`,
      options,
    );
  }
}
