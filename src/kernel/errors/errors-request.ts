// Errors of requests to running workflows.
import { errorOf } from './errors-base.js';

/** A request to a workflow was not answered in time. It may still be. */
export class DBOSRequestTimeoutError extends errorOf('DBOSRequestTimeoutError', 'REQUEST_TIMEOUT') {
  constructor(
    readonly workflowID: string,
    readonly requestName: string,
    readonly timeoutMs: number,
    options?: ErrorOptions,
  ) {
    super(
      `Workflow ${workflowID} did not answer request "${requestName}" within ${timeoutMs}ms. ` +
        'Repeat it with the same idempotencyKey to go on waiting for the same answer.',
      options,
    );
  }
}

/** A request to a workflow will never be answered. */
export class DBOSRequestRefusedError extends errorOf('DBOSRequestRefusedError', 'REQUEST_REFUSED') {
  constructor(
    readonly workflowID: string,
    readonly requestName: string,
    reason: string,
    options?: ErrorOptions,
  ) {
    super(`Workflow ${workflowID} did not answer request "${requestName}": ${reason}`, options);
  }
}
