// Why a run has lost its workflow, and what that means.
import type { WorkflowRecord } from '../kernel/workflow/records.js';
import {
  DatabaseClosedError,
  DBOSNonExistentWorkflowError,
  DBOSStepNondeterminismError,
  DBOSUnexpectedStepError,
  DBOSWorkflowCancelledError,
  DBOSWorkflowConflictError,
} from '../kernel/errors/errors.js';
import { findWorkflows } from './rows/workflows.js';
import type { Runtime } from './runtime.js';

interface Owner {
  readonly runtime: Runtime;
  readonly workflowID: string;
  readonly owner: string;
}

/** Whether the row still has this run's owner token. */
export async function isOwner(run: Owner): Promise<boolean> {
  return !lossReasonFor(run, await readRow(run));
}

/** Reads why the run no longer owns the workflow. */
export async function findLossReason(run: Owner): Promise<Error> {
  return lossReasonFor(run, await readRow(run)) ?? new DBOSWorkflowConflictError(run.workflowID);
}

/** Why the run does not own the workflow, given its row; undefined if it does. */
export function lossReasonFor({ workflowID, owner }: Owner, workflow: WorkflowRecord | undefined): Error | undefined {
  if (!workflow) return new DBOSNonExistentWorkflowError(`Workflow ${workflowID} does not exist`);
  if (workflow.status === 'PENDING' && workflow.owner === owner) return undefined;
  if (workflow.status === 'CANCELLED') return new DBOSWorkflowCancelledError(workflowID);
  return new DBOSWorkflowConflictError(workflowID);
}

async function readRow({ runtime, workflowID }: Owner): Promise<WorkflowRecord | undefined> {
  return (await runtime.retrying(() => findWorkflows(runtime.store.database, [workflowID])))[0];
}

/** Whether it ends the workflow itself, as opposed to this run of it. */
export function isEndOfWorkflow(reason: Error): boolean {
  const isLoss =
    reason instanceof DBOSWorkflowConflictError ||
    reason instanceof DBOSNonExistentWorkflowError ||
    reason instanceof DatabaseClosedError;
  return !isLoss && !isDivergence(reason);
}

/** Whether the code of the workflow does not fit what is recorded. */
export function isDivergence(reason: Error | undefined): reason is Error {
  return reason instanceof DBOSUnexpectedStepError || reason instanceof DBOSStepNondeterminismError;
}
