// The verdict on each item of a batch. The rows that the statements returned settle the usual case; only missing items are
// looked up. A commit holds the items of one run per workflow at most, so a returned key belongs to one item. What an
// earlier attempt has written is recognised by the run's token, which no other run has: equal content proves nothing.
import { UnexplainedRefusalError } from '../../kernel/errors/database-errors.js';
import type { StepRecord } from '../../kernel/workflow/records.js';
import type { Database, Reader, Row } from '../../database/database.js';
import { belongsTo, findOutcomesOf, findOwners, type OwnerRow } from '../rows/owners.js';
import { type Checkpoint, findSteps, type StepKey } from '../rows/steps.js';
import {
  findDeduplicationHolders,
  findSummaries,
  type NewWorkflow,
  type Outcome,
  type WorkflowSummary,
} from '../rows/workflows.js';

/** The verdict on a start. */
export type StartVerdict =
  /** The row is this caller's. The database set the deadline. */
  | { readonly kind: 'created'; readonly deadlineAt: number | null }
  /** A workflow with this ID already exists. */
  | { readonly kind: 'exists'; readonly workflow: WorkflowSummary }
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

/**
 * The verdict on each start. Undefined if it was refused and the reason is not there (any more), such as a conflicting
 * workflow that was deleted meanwhile: the start may be repeated.
 */
export async function judgeStarts(
  database: Reader,
  starts: readonly NewWorkflow[],
  written: readonly Row[] = [],
): Promise<(StartVerdict | undefined)[]> {
  const deadlines = new Map(written.map((row) => [row['creator_xid'], row['workflow_deadline_epoch_ms']]));
  const missing = starts.filter((start) => !deadlines.has(start.creator));
  const explained = missing.length === 0 ? undefined : await explainStarts(database, missing);
  return starts.map((start) =>
    deadlines.has(start.creator)
      ? { kind: 'created', deadlineAt: (deadlines.get(start.creator) as number | null) ?? null }
      : explained?.get(start),
  );
}

/** The same, for callers that can repeat only all starts together. */
export async function judgeAllStarts(
  database: Reader,
  starts: readonly NewWorkflow[],
  written: readonly Row[],
): Promise<StartVerdict[]> {
  const verdicts = await judgeStarts(database, starts, written);
  return verdicts.map((verdict, index) => {
    if (verdict) return verdict;
    throw new UnexplainedRefusalError(`to create workflow "${starts[index]?.workflowID}"`);
  });
}

async function explainStarts(
  database: Reader,
  missing: readonly NewWorkflow[],
): Promise<Map<NewWorkflow, StartVerdict | undefined>> {
  const found = await findSummaries(database, unique(missing.map(({ workflowID }) => workflowID)));
  const existing = new Map(found.map((workflow) => [workflow.workflowID, workflow]));
  const parentIDs = missing.flatMap(({ parentOwner, parentWorkflowID }) =>
    parentOwner === null ? [] : [parentWorkflowID ?? ''],
  );
  const parents = parentIDs.length === 0 ? new Map<string, OwnerRow>() : await findOwners(database, parentIDs);
  const keys = missing.flatMap(({ workflowID, queueName, deduplicationID }) =>
    !existing.has(workflowID) && queueName !== null && deduplicationID !== null ? [{ queueName, deduplicationID }] : [],
  );
  const holders = keys.length === 0 ? [] : await findDeduplicationHolders(database, keys);
  return new Map(missing.map((start) => [start, explainStart(start, { existing, parents, holders })]));
}

interface Obstacles {
  readonly existing: ReadonlyMap<string, WorkflowSummary>;
  readonly parents: ReadonlyMap<string, OwnerRow>;
  readonly holders: readonly WorkflowSummary[];
}

function explainStart(start: NewWorkflow, { existing, parents, holders }: Obstacles): StartVerdict | undefined {
  const workflow = existing.get(start.workflowID);
  if (workflow?.creator === start.creator) return { kind: 'created', deadlineAt: workflow.deadlineAt };
  if (workflow) return { kind: 'exists', workflow };
  const parent = parents.get(start.parentWorkflowID ?? '');
  if (start.parentOwner !== null && !(parent?.owner === start.parentOwner && parent.status === 'PENDING')) {
    return { kind: 'orphaned' };
  }
  const holder = holders.find(
    (other) => other.queueName === start.queueName && other.deduplicationID === start.deduplicationID,
  );
  return holder && { kind: 'duplicated', holderID: holder.workflowID };
}

export async function judgeCheckpoints(
  database: Database,
  checkpoints: readonly Checkpoint[],
  written: readonly Row[] = [],
): Promise<CheckpointVerdict[]> {
  // Keys are unique: if all were returned, all were written.
  if (written.length === checkpoints.length) return checkpoints.map(() => 'recorded');
  const recorded = new Set(
    written.map((row) => keyOf({ workflowID: row['workflow_uuid'] as string, stepID: row['function_id'] as number })),
  );
  // Of two checkpoints of a step in one batch, the statement wrote the first.
  const isRecorded = checkpoints.map(({ step }) => recorded.delete(keyOf(step)));
  const missing = checkpoints.filter((_, index) => !isRecorded[index]).map(({ step }) => step);
  const owners = await findOwners(
    database,
    missing.map(({ workflowID }) => workflowID),
  );
  const steps = new Map((await findSteps(database, missing)).map((step) => [keyOf(step), step]));
  return checkpoints.map((checkpoint, index) =>
    isRecorded[index]
      ? 'recorded'
      : explainCheckpoint(checkpoint, owners.get(checkpoint.step.workflowID), steps.get(keyOf(checkpoint.step))),
  );
}

function explainCheckpoint(
  checkpoint: Checkpoint,
  row: OwnerRow | undefined,
  found: StepRecord | undefined,
): CheckpointVerdict {
  // A checkpoint that another owner wrote may well be equal to ours.
  if (!belongsTo(row, checkpoint.owner)) return 'lost';
  // Written by an earlier attempt whose commit was unconfirmed; the run may even have ended since.
  if (found) return isSameCheckpoint(found, checkpoint.step) ? 'recorded' : 'conflict';
  if (row?.status !== 'PENDING') return 'lost';
  return restsOnOthers(checkpoint) ? 'refused' : 'conflict';
}

export async function judgeOutcomes(
  database: Database,
  outcomes: readonly Outcome[],
  written: readonly Row[] = [],
): Promise<OutcomeVerdict[]> {
  if (written.length === outcomes.length) return outcomes.map(() => 'recorded');
  const recorded = new Set(written.map((row) => row['workflow_uuid'] as string));
  const missing = outcomes.filter(({ workflowID }) => !recorded.has(workflowID));
  const rows = await findOutcomesOf(database, missing);
  missing.forEach((outcome, ordinal) => {
    const row = rows.get(ordinal);
    const isOurs = row?.status === outcome.status && row.output === outcome.output && row.error === outcome.error;
    if (isOurs) recorded.add(outcome.workflowID);
  });
  return outcomes.map(({ workflowID }) => (recorded.has(workflowID) ? 'recorded' : 'lost'));
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

function keyOf({ workflowID, stepID }: StepKey): string {
  return `${stepID} ${workflowID}`;
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}
