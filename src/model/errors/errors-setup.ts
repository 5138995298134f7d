// Errors about an application's configuration, registrations and requests: what is wrong before any workflow runs.
import { DBOSError, hasErrorCode } from './errors-base.js';

export const QueueDedupIDDuplicated = 28;
export const QueryTimeout = 35;
const DATA_VALIDATION_NUMBER = 9;
const DATA_VALIDATION_CODE = 'DATA_VALIDATION';

/** The engine could not be set up or launched. */
export class DBOSInitializationError extends DBOSError {
  override readonly name = 'DBOSInitializationError';
  override readonly code = 'INITIALIZATION_FAILED';

  constructor(
    message: string,
    readonly error?: Error,
    options?: ErrorOptions,
  ) {
    super(message, 3, options ?? (error === undefined ? undefined : { cause: error }));
  }
}

/** A workflow, step, class or queue is not known to this engine. */
export class DBOSNotRegisteredError extends DBOSError {
  override readonly name = 'DBOSNotRegisteredError';
  override readonly code = 'NOT_REGISTERED';

  constructor(operationName: string, fullMessage?: string, options?: ErrorOptions) {
    const message = `Operation (Name: ${operationName}) not registered. Register it before DBOS.launch().`;
    super(fullMessage ?? message, 6, options);
  }
}

/** An argument does not have the declared type or form. */
export class DBOSDataValidationError extends DBOSError {
  override readonly name = 'DBOSDataValidationError';
  override readonly code = DATA_VALIDATION_CODE;

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
  override readonly name = 'DBOSNotAuthorizedError';
  override readonly code = 'NOT_AUTHORIZED';

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
  override readonly name = 'DBOSConfigKeyTypeError';
  override readonly code = 'CONFIG_KEY_TYPE';

  constructor(configKey: string, expectedType: string, actualType: string, options?: ErrorOptions) {
    super(`Configuration key "${configKey}" should be of type ${expectedType}, but is ${actualType}.`, 14, options);
  }
}

/** The application's code could not be loaded. */
export class DBOSFailLoadOperationsError extends DBOSError {
  override readonly name = 'DBOSFailLoadOperationsError';
  override readonly code = 'LOAD_OPERATIONS_FAILED';

  constructor(message: string, options?: ErrorOptions) {
    super(message, 17, options);
  }
}

/** The engine was used before it was launched or after it was shut down. */
export class DBOSExecutorNotInitializedError extends DBOSError {
  override readonly name = 'DBOSExecutorNotInitializedError';
  override readonly code = 'EXECUTOR_NOT_INITIALIZED';

  constructor(message = 'DBOS not initialized. Call and await DBOS.launch() first.', options?: ErrorOptions) {
    super(message, 20, options);
  }
}

/** Two registrations claim one name, or one comes after the launch. */
export class DBOSConflictingRegistrationError extends DBOSError {
  override readonly name = 'DBOSConflictingRegistrationError';
  override readonly code = 'CONFLICTING_REGISTRATION';

  constructor(message: string, options?: ErrorOptions) {
    super(message, 25, options);
  }
}

/** The queue holds a workflow with the same deduplication ID. `workflowID` is the one that was turned away. */
export class DBOSQueueDuplicatedError extends DBOSError {
  override readonly name = 'DBOSQueueDuplicatedError';
  override readonly code = 'QUEUE_DUPLICATED';

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
  override readonly name = 'DBOSInvalidQueuePriorityError';
  override readonly code = 'INVALID_QUEUE_PRIORITY';

  constructor(priority: number | string, min: number, max: number, options?: ErrorOptions) {
    super(`Invalid priority ${priority}. Use an integer from ${min} to ${max}.`, 29, options);
  }
}

/** The settings of a queue contradict each other, or the queue cannot be used in that way. */
export class InvalidQueueError extends DBOSError {
  override readonly name = 'InvalidQueueError';
  override readonly code = 'INVALID_QUEUE';

  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}

/** A query of workflows or steps took too long and was stopped by the database. */
export class DBOSQueryTimeoutError extends DBOSError {
  override readonly name = 'DBOSQueryTimeoutError';
  override readonly code = 'QUERY_TIMEOUT';

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
