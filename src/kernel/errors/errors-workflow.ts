// Errors about a workflow as a whole: its identity, its ownership and its end.
import { DBOSError, hasErrorCode } from './errors-base.js';

export const WorkflowIDInUse = 36;
const WORKFLOW_ID_IN_USE_CODE = 'WORKFLOW_ID_IN_USE';

/** This run no longer owns its workflow: another execution has taken it over. */
export class DBOSWorkflowConflictError extends DBOSError {
  static override readonly code = 'WORKFLOW_CONFLICT';
  override readonly name = 'DBOSWorkflowConflictError';
  override readonly code = DBOSWorkflowConflictError.code;

  constructor(
    readonly workflowID: string,
    options?: ErrorOptions,
  ) {
    super(
      `Workflow ${workflowID} is no longer owned by this execution. ` +
        `Another execution has taken it over; its handle gives the result.`,
      5,
      options,
    );
  }
}

/** No workflow has this ID. */
export class DBOSNonExistentWorkflowError extends DBOSError {
  static override readonly code = 'NON_EXISTENT_WORKFLOW';
  override readonly name = 'DBOSNonExistentWorkflowError';
  override readonly code = DBOSNonExistentWorkflowError.code;

  constructor(message: string, options?: ErrorOptions) {
    super(message, 16, options);
  }
}

/** A workflow was started or recovered too often without finishing. */
export class DBOSMaxRecoveryAttemptsExceededError extends DBOSError {
  static override readonly code = 'MAX_RECOVERY_ATTEMPTS_EXCEEDED';
  override readonly name = 'DBOSMaxRecoveryAttemptsExceededError';
  override readonly code = DBOSMaxRecoveryAttemptsExceededError.code;

  constructor(
    readonly workflowID: string,
    readonly maxRecoveryAttempts?: number,
    options?: ErrorOptions,
  ) {
    const maximum = maxRecoveryAttempts === undefined ? '' : `${maxRecoveryAttempts} `;
    super(
      `Workflow ${workflowID} has exceeded its maximum of ${maximum}execution or recovery attempts. ` +
        `It is not run again by itself. Find out why its process died, then call DBOS.resumeWorkflow.`,
      18,
      options,
    );
  }
}

/** The operation is not allowed in the present state or place. */
export class DBOSInvalidWorkflowTransitionError extends DBOSError {
  static override readonly code = 'INVALID_WORKFLOW_TRANSITION';
  override readonly name = 'DBOSInvalidWorkflowTransitionError';
  override readonly code = DBOSInvalidWorkflowTransitionError.code;

  constructor(message = 'Invalid workflow state', options?: ErrorOptions) {
    super(message, 21, options);
  }
}

/** A workflow with this ID exists already and is one of another function. */
export class DBOSConflictingWorkflowError extends DBOSError {
  static override readonly code = 'CONFLICTING_WORKFLOW';
  override readonly name = 'DBOSConflictingWorkflowError';
  override readonly code = DBOSConflictingWorkflowError.code;

  constructor(
    readonly workflowID: string,
    message: string,
    options?: ErrorOptions,
  ) {
    super(`Conflicting workflow invocation with the same ID (${workflowID}): ${message}`, 22, options);
  }
}

/** The workflow that raises it has been cancelled. */
export class DBOSWorkflowCancelledError extends DBOSError {
  static override readonly code = 'WORKFLOW_CANCELLED';
  override readonly name = 'DBOSWorkflowCancelledError';
  override readonly code = DBOSWorkflowCancelledError.code;

  constructor(
    readonly workflowID: string,
    options?: ErrorOptions,
  ) {
    super(`Workflow ${workflowID} has been cancelled. Call DBOS.resumeWorkflow to continue it.`, 24, options);
  }
}

/** A workflow whose result was awaited has been cancelled. */
export class DBOSAwaitedWorkflowCancelledError extends DBOSError {
  static override readonly code = 'AWAITED_WORKFLOW_CANCELLED';
  override readonly name = 'DBOSAwaitedWorkflowCancelledError';
  override readonly code = DBOSAwaitedWorkflowCancelledError.code;

  constructor(
    readonly workflowID: string,
    options?: ErrorOptions,
  ) {
    super(`Awaited ${workflowID} was cancelled. Call DBOS.resumeWorkflow to continue it.`, 27, options);
  }
}

/** A workflow whose result was awaited was started or recovered too often without finishing. */
export class DBOSAwaitedWorkflowExceededMaxRecoveryAttempts extends DBOSError {
  static override readonly code = 'AWAITED_WORKFLOW_EXCEEDED_MAX_RECOVERY_ATTEMPTS';
  override readonly name = 'DBOSAwaitedWorkflowExceededMaxRecoveryAttempts';
  override readonly code = DBOSAwaitedWorkflowExceededMaxRecoveryAttempts.code;

  constructor(
    readonly workflowID: string,
    options?: ErrorOptions,
  ) {
    super(
      `Awaited ${workflowID} has exceeded its maximum of execution or recovery attempts. ` +
        `Find out why its process died, then call DBOS.resumeWorkflow.`,
      30,
      options,
    );
  }
}

/** The arguments of a workflow cannot be stored. */
export class DBOSInvalidWorkflowInputError extends DBOSError {
  static override readonly code = 'INVALID_WORKFLOW_INPUT';
  override readonly name = 'DBOSInvalidWorkflowInputError';
  override readonly code = DBOSInvalidWorkflowInputError.code;

  constructor(
    readonly workflowName: string,
    cause: unknown,
  ) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super(`Invalid input for workflow ${workflowName}: ${reason}`, 32, { cause });
  }
}

/** The ID is taken, and the caller asked for a fresh workflow. */
export class DBOSWorkflowIDInUseError extends DBOSError {
  static override readonly code = WORKFLOW_ID_IN_USE_CODE;
  override readonly name = 'DBOSWorkflowIDInUseError';
  override readonly code = DBOSWorkflowIDInUseError.code;

  constructor(
    readonly workflowID: string,
    readonly status: string,
    readonly workflowName: string,
    options?: ErrorOptions,
  ) {
    super(
      `Workflow ID ${workflowID} is in use by workflow ${workflowName} (status ${status}). ` +
        `Choose another ID, or start with workflowIDReusePolicy: 'return-existing'.`,
      WorkflowIDInUse,
      options,
    );
  }
}

/** True for a DBOSWorkflowIDInUseError, also one that was stored and read back. */
export function isWorkflowIDInUseError(error: unknown): boolean {
  return hasErrorCode(error, WorkflowIDInUse, WORKFLOW_ID_IN_USE_CODE);
}

/** The outcome of a workflow could not be stored. This error is stored instead. */
export class DBOSOutcomeNotStorableError extends DBOSError {
  static override readonly code = 'OUTCOME_NOT_STORABLE';
  override readonly name = 'DBOSOutcomeNotStorableError';
  override readonly code = DBOSOutcomeNotStorableError.code;

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
export class ArchiveError extends DBOSError {
  static override readonly code = 'ARCHIVE';
  override readonly name = 'ArchiveError';
  override readonly code = ArchiveError.code;

  constructor(message: string, options?: ErrorOptions) {
    super(message, 1, options);
  }
}

/** A workflow could not be imported. Those before it, `imported` of them, are there. */
export class WorkflowImportError extends DBOSError {
  static override readonly code = 'WORKFLOW_IMPORT';
  override readonly name = 'WorkflowImportError';
  override readonly code = WorkflowImportError.code;

  constructor(
    message: string,
    readonly workflowID: string | undefined,
    readonly imported: number,
    options?: ErrorOptions,
  ) {
    super(message, 1, options);
  }
}
