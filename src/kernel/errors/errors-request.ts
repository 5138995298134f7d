// Errors of requests to running workflows.
import { DBOSError } from './errors-base.js';

/** A request to a workflow was not answered in time. It may still be. */
export class DBOSRequestTimeoutError extends DBOSError {
  static override readonly code = 'REQUEST_TIMEOUT';
  override readonly name = 'DBOSRequestTimeoutError';
  override readonly code = DBOSRequestTimeoutError.code;

  constructor(
    readonly workflowID: string,
    readonly requestName: string,
    readonly timeoutMs: number,
    options?: ErrorOptions,
  ) {
    super(
      `Workflow ${workflowID} did not answer request "${requestName}" within ${timeoutMs}ms. ` +
        'Repeat it with the same idempotencyKey to go on waiting for the same answer.',
      1,
      options,
    );
  }
}

/** A request to a workflow will never be answered. */
export class DBOSRequestRefusedError extends DBOSError {
  static override readonly code = 'REQUEST_REFUSED';
  override readonly name = 'DBOSRequestRefusedError';
  override readonly code = DBOSRequestRefusedError.code;

  constructor(
    readonly workflowID: string,
    readonly requestName: string,
    reason: string,
    options?: ErrorOptions,
  ) {
    super(`Workflow ${workflowID} did not answer request "${requestName}": ${reason}`, 1, options);
  }
}
