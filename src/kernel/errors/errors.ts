// The error catalogue: every error that Everstep raises is imported from here. A class carries the name and the
// number that DBOS gives it, and a string `code` of ours. `docs/reference/errors.md` lists them all; a test insists.
import { recognizeCopies } from '../base/copies.js';

export * from './errors-argument.js';
export { DBOSError, getDBOSErrorCode, hasErrorCode } from './errors-base.js';
export * from './errors-outbox.js';
export * from './errors-receiver.js';
export * from './errors-request.js';
export * from './errors-schedule.js';
export * from './errors-setup.js';
export * from './errors-step.js';
export * from './errors-workflow.js';
export * from './database-errors.js';

/** What JSON can express. */
export type JSONValue = null | boolean | number | string | JSONValue[] | { [key: string]: JSONValue };

/**
 * An error in the form that every language understands. Throw it from a portable workflow to hand a code and data to
 * a caller in another language; every error of a portable workflow is read back as one.
 */
export class PortableWorkflowError extends Error {
  static {
    recognizeCopies(this, 'PortableWorkflowError');
  }

  constructor(
    message: string,
    override readonly name: string,
    readonly code?: string | number,
    readonly data?: JSONValue,
  ) {
    super(message);
  }
}
