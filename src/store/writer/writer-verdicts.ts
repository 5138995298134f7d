// The verdict on each item of a batch. The rows that the statements returned settle the usual case; only missing items are
// looked up.
import { DatabaseStatementError } from '../../model/errors/database-errors.js';
import type { StepRecord, WorkflowRecord } from '../../model/records.js';
import type { Database, Reader, Row } from '../database.js';
import { type Checkpoint, loadSteps } from '../runs/steps.js';
import { findDeduplicationHolders, findWorkflows, type NewWorkflow, type Outcome } from '../runs/workflows.js';

/** The verdict on a start. */
export type StartVerdict =
  /** The row is this caller's. The database set the deadline. */
  | { readonly kind: 'created'; readonly deadlineAt: number | null }
  /** A workflow with this ID already exists. */
  | { readonly kind: 'exists'; readonly workflow: WorkflowRecord }
  /** Another workflow in the queue has the deduplication ID. */
  | { readonly kind: 'duplicated'; readonly holderID: string }
  /** The run no longer owns the parent. */
  | { readonly kind: 'orphaned' };

/** The verdict on a checkpoint. */
export type CheckpointVerdict =
  | 'recorded'
  /** The run no longer owns the workflow, or it was deleted. */
  | 'lost'
  /** The step already has another checkpoint. */
  | 'conflict'
  /** What the checkpoint refers to does not exist: the child or the message. */
  | 'refused';

export type OutcomeVerdict = 'recorded' | 'lost';

export async function judgeStarts(
  database: Reader,
  starts: readonly NewWorkflow[],
  written: readonly Row[] = [],
): Promise<StartVerdict[]> {
  const deadlines = new Map(written.map((row) => [row['creator_xid'], row['workflow_deadline_epoch_ms']]));
  const missing = starts.filter((start) => !deadlines.has(start.creator));
  const explained =
    missing.length === 0 ? new Map<NewWorkflow, StartVerdict>() : await explainStarts(database, missing);
  return starts.map(
    (start) =>
      explained.get(start) ?? { kind: 'created', deadlineAt: (deadlines.get(start.creator) as number | null) ?? null },
  );
}

async function explainStarts(
  database: Reader,
  missing: readonly NewWorkflow[],
): Promise<Map<NewWorkflow, StartVerdict>> {
  const parentIDs = missing.flatMap((start) => (start.parentOwner === null ? [] : [start.parentWorkflowID ?? '']));
  const existing = byID(
    await findWorkflows(database, unique([...missing.map((start) => start.workflowID), ...parentIDs])),
  );
  const keys = missing.flatMap(({ workflowID, queueName, deduplicationID }) =>
    !existing.has(workflowID) && queueName !== null && deduplicationID !== null ? [{ queueName, deduplicationID }] : [],
  );
  const holders = keys.length === 0 ? [] : await findDeduplicationHolders(database, keys);
  return new Map(missing.map((start) => [start, explainStart(start, existing, holders)]));
}

function explainStart(
  start: NewWorkflow,
  workflows: ReadonlyMap<string, WorkflowRecord>,
  holders: readonly WorkflowRecord[],
): StartVerdict {
  const existing = workflows.get(start.workflowID);
  if (existing?.creator === start.creator) return { kind: 'created', deadlineAt: existing.deadlineAt };
  if (existing) return { kind: 'exists', workflow: existing };
  if (start.parentOwner !== null && workflows.get(start.parentWorkflowID ?? '')?.owner !== start.parentOwner) {
    return { kind: 'orphaned' };
  }
  const holder = holders.find(
    (other) => other.queueName === start.queueName && other.deduplicationID === start.deduplicationID,
  );
  if (holder) return { kind: 'duplicated', holderID: holder.workflowID };
  // The conflicting row is gone by now. Report a serialization failure, which is retried.
  throw new DatabaseStatementError(`The workflow that conflicted with "${start.workflowID}" was deleted meanwhile.`, {
    sqlState: '40001',
  });
}

export async function judgeCheckpoints(
  database: Database,
  checkpoints: readonly Checkpoint[],
  written: readonly Row[] = [],
): Promise<CheckpointVerdict[]> {
  // Keys are unique: if all were returned, all were written.
  if (written.length === checkpoints.length) return checkpoints.map(() => 'recorded');
  const recorded = new Set(written.map((row) => stepKey(row['workflow_uuid'] as string, row['function_id'] as number)));
  // Of two checkpoints of a step in one batch, the statement wrote the first.
  const isRecorded = checkpoints.map(({ step }) => recorded.delete(stepKey(step.workflowID, step.stepID)));
  const missing = checkpoints.filter((_, index) => !isRecorded[index]);
  const workflowIDs = unique(missing.map(({ step }) => step.workflowID));
  const workflows = byID(await findWorkflows(database, workflowIDs));
  const steps = new Map(
    (await loadSteps(database, workflowIDs)).map((step) => [stepKey(step.workflowID, step.stepID), step]),
  );
  return checkpoints.map((checkpoint, index): CheckpointVerdict => {
    if (isRecorded[index]) return 'recorded';
    const { owner, step } = checkpoint;
    const found = steps.get(stepKey(step.workflowID, step.stepID));
    // Written by an earlier attempt whose commit was unconfirmed; the run may even have ended since.
    if (found && isSameCheckpoint(found, step)) return 'recorded';
    const workflow = workflows.get(step.workflowID);
    if (workflow?.owner !== owner || workflow.status !== 'PENDING') return 'lost';
    return !found && restsOnOthers(checkpoint) ? 'refused' : 'conflict';
  });
}

export async function judgeOutcomes(
  database: Database,
  outcomes: readonly Outcome[],
  written: readonly Row[] = [],
): Promise<OutcomeVerdict[]> {
  if (written.length === outcomes.length) return outcomes.map(() => 'recorded');
  const recorded = new Set(written.map((row) => row['workflow_uuid'] as string));
  const isRecorded = outcomes.map((outcome) => recorded.delete(outcome.workflowID));
  const missing = outcomes.filter((_, index) => !isRecorded[index]);
  const workflows = byID(await findWorkflows(database, unique(missing.map((outcome) => outcome.workflowID))));
  return outcomes.map((outcome, index): OutcomeVerdict => {
    if (isRecorded[index]) return 'recorded';
    const workflow = workflows.get(outcome.workflowID);
    // An outcome clears the owner token. An equal outcome is ours, or as good as ours.
    return workflow && isSameOutcome(workflow, outcome) ? 'recorded' : 'lost';
  });
}

/** Whether the checkpoint may only be written if something else exists. */
function restsOnOthers({ child, sentID, receivedID }: Checkpoint): boolean {
  return child !== undefined || sentID !== undefined || receivedID !== undefined;
}

function isSameCheckpoint(found: StepRecord, step: StepRecord): boolean {
  return (
    found.name === step.name &&
    found.output === step.output &&
    found.error === step.error &&
    found.childWorkflowID === step.childWorkflowID &&
    found.completedAt === step.completedAt
  );
}

function isSameOutcome(found: WorkflowRecord, outcome: Outcome): boolean {
  return found.status === outcome.status && found.output === outcome.output && found.error === outcome.error;
}

function stepKey(workflowID: string, stepID: number): string {
  return `${stepID} ${workflowID}`;
}

function byID(workflows: readonly WorkflowRecord[]): Map<string, WorkflowRecord> {
  return new Map(workflows.map((workflow) => [workflow.workflowID, workflow]));
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}
