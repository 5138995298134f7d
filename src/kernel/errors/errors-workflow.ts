// Errors about a workflow as a whole: its identity, its ownership and its end.
import { errorOf, hasErrorCode } from './errors-base.js';

export const WorkflowIDInUse = 36;
const WORKFLOW_ID_IN_USE_CODE = 'WORKFLOW_ID_IN_USE';

/** This run no longer owns its workflow: another execution has taken it over. */
export class DBOSWorkflowConflictError extends errorOf('DBOSWorkflowConflictError', 'WORKFLOW_CONFLICT', 5) {
  constructor(
    readonly workflowID: string,
    options?: ErrorOptions,
  ) {
    super(
      `Workflow ${workflowID} is no longer owned by this execution. ` +
        `Another execution has taken it over; its handle gives the result.`,
      options,
    );
  }
}

/** No workflow has this ID. */
export class DBOSNonExistentWorkflowError extends errorOf(
  'DBOSNonExistentWorkflowError',
  'NON_EXISTENT_WORKFLOW',
  16,
) {}

/** A workflow was started or recovered too often without finishing. */
export class DBOSMaxRecoveryAttemptsExceededError extends errorOf(
  'DBOSMaxRecoveryAttemptsExceededError',
  'MAX_RECOVERY_ATTEMPTS_EXCEEDED',
  18,
) {
  constructor(
    readonly workflowID: string,
    readonly maxRecoveryAttempts?: number,
    options?: ErrorOptions,
  ) {
    const maximum = maxRecoveryAttempts === undefined ? '' : `${maxRecoveryAttempts} `;
    super(
      `Workflow ${workflowID} has exceeded its maximum of ${maximum}execution or recovery attempts. ` +
        `It is not run again by itself. Find out why its process died, then call DBOS.resumeWorkflow.`,
      options,
    );
  }
}

/** The operation is not allowed in the present state or place. */
export class DBOSInvalidWorkflowTransitionError extends errorOf(
  'DBOSInvalidWorkflowTransitionError',
  'INVALID_WORKFLOW_TRANSITION',
  21,
) {
  constructor(message = 'Invalid workflow state', options?: ErrorOptions) {
    super(message, options);
  }
}

/** A workflow with this ID exists already and is one of another function. */
export class DBOSConflictingWorkflowError extends errorOf('DBOSConflictingWorkflowError', 'CONFLICTING_WORKFLOW', 22) {
  constructor(
    readonly workflowID: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(`Conflicting workflow invocation with the same ID (${workflowID}): ${message}`, options);
  }
}

/** The workflow that raises it has been cancelled. */
export class DBOSWorkflowCancelledError extends errorOf('DBOSWorkflowCancelledError', 'WORKFLOW_CANCELLED', 24) {
  constructor(
    readonly workflowID: string,
    options?: ErrorOptions,
  ) {
    super(`Workflow ${workflowID} has been cancelled. Call DBOS.resumeWorkflow to continue it.`, options);
  }
}

/** A workflow whose result was awaited has been cancelled. */
export class DBOSAwaitedWorkflowCancelledError extends errorOf(
  'DBOSAwaitedWorkflowCancelledError',
  'AWAITED_WORKFLOW_CANCELLED',
  27,
) {
  constructor(
    readonly workflowID: string,
    options?: ErrorOptions,
  ) {
    super(`Awaited ${workflowID} was cancelled. Call DBOS.resumeWorkflow to continue it.`, options);
  }
}

/** A workflow whose result was awaited was started or recovered too often without finishing. */
export class DBOSAwaitedWorkflowExceededMaxRecoveryAttempts extends errorOf(
  'DBOSAwaitedWorkflowExceededMaxRecoveryAttempts',
  'AWAITED_WORKFLOW_EXCEEDED_MAX_RECOVERY_ATTEMPTS',
  30,
) {
  constructor(
    readonly workflowID: string,
    options?: ErrorOptions,
  ) {
    super(
      `Awaited ${workflowID} has exceeded its maximum of execution or recovery attempts. ` +
        `Find out why its process died, then call DBOS.resumeWorkflow.`,
      options,
    );
  }
}

/** The arguments of a workflow cannot be stored. */
export class DBOSInvalidWorkflowInputError extends errorOf(
  'DBOSInvalidWorkflowInputError',
  'INVALID_WORKFLOW_INPUT',
  32,
) {
  constructor(
    readonly workflowName: string,
    cause: unknown,
  ) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`Invalid input for workflow ${workflowName}: ${reason}`, { cause });
  }
}

/** The ID is taken, and the caller asked for a fresh workflow. */
export class DBOSWorkflowIDInUseError extends errorOf(
  'DBOSWorkflowIDInUseError',
  WORKFLOW_ID_IN_USE_CODE,
  WorkflowIDInUse,
) {
  constructor(
    readonly workflowID: string,
    readonly status: string,
    readonly workflowName: string,
    options?: ErrorOptions,
  ) {
    super(
      `Workflow ID ${workflowID} is in use by workflow ${workflowName} (status ${status}). ` +
        `Choose another ID, or start with workflowIDReusePolicy: 'return-existing'.`,
      options,
    );
  }
}

/** True for a DBOSWorkflowIDInUseError, also one that was stored and read back. */
export function isWorkflowIDInUseError(error: unknown): boolean {
  return hasErrorCode(error, WorkflowIDInUse, WORKFLOW_ID_IN_USE_CODE);
}

/** The outcome of a workflow could not be stored. This error is stored instead. */
export class DBOSOutcomeNotStorableError extends errorOf('DBOSOutcomeNotStorableError', 'OUTCOME_NOT_STORABLE') {
  constructor(
    readonly workflowID: string,
    reason: unknown,
  ) {
    // No cause: it may hold what could not be stored.
    const message = reason instanceof Error ? reason.message : String(reason);
    super(`The outcome of workflow "${workflowID}" cannot be stored: ${message.replaceAll('\0', '')}`);
  }
}

/** Workflows could not be archived, or read from the archive. Nothing was deleted that is not archived. */
export class ArchiveError extends errorOf('ArchiveError', 'ARCHIVE') {}

/** A workflow could not be imported. Those before it, `imported` of them, are there. */
export class WorkflowImportError extends errorOf('WorkflowImportError', 'WORKFLOW_IMPORT') {
  constructor(
    message: string,
    readonly workflowID: string | undefined,
    readonly imported: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
