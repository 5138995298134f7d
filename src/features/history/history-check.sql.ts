// Derives the state of a workflow from the events of a `full` history alone, and compares it with the tables.
import { sql, table } from '../../kernel/sql/sql.js';
import type { Database, Executor, Row } from '../../database/database.js';

/** The state that follows from events: whether it has ended and how, and the checkpoints that it must have. */
interface DerivedState {
  status: string;
  /** The keys of checkpoints, by number. */
  readonly steps: Map<number, string>;
}

/** Waiting and running are one: a claim is only stored with the first write after it. */
const ACTIVE = 'active';

const STATUS_AFTER: Readonly<Record<string, string>> = {
  WorkflowStarted: ACTIVE,
  AttemptStarted: ACTIVE,
  AttemptLost: ACTIVE,
  WorkflowTaskYielded: ACTIVE,
  WorkflowResumed: ACTIVE,
  WorkflowRewound: ACTIVE,
  WorkflowCompleted: 'SUCCESS',
  WorkflowFailed: 'ERROR',
  WorkflowCancelRequested: 'CANCELLED',
  WorkflowTimedOut: 'CANCELLED',
  WorkflowDeadLettered: 'MAX_RECOVERY_ATTEMPTS_EXCEEDED',
};

const KEPT_BY_REWIND = 'WorkflowRewound';

/** Replays the stored events, which are in the order in which they were written. */
function derive(events: readonly Row[]): DerivedState {
  const state: DerivedState = { status: 'none', steps: new Map() };
  for (const event of events) {
    const type = event['event_type'] as string;
    state.status = STATUS_AFTER[type] ?? state.status;
    const step = event['step'] as number | null;
    const key = event['key'] as string | null;
    const completedAt = /^step:\d+:(?:done|begun):(\d+)$/.exec(key ?? '')?.[1];
    // The end of a sleep is not recorded by itself.
    if (step !== null && completedAt !== undefined && type !== 'TimerFired') state.steps.set(step, completedAt);
    if (type !== KEPT_BY_REWIND) continue;
    const startStep = Number(event['start_step'] ?? 0);
    for (const stepID of state.steps.keys()) if (stepID >= startStep) state.steps.delete(stepID);
  }
  return state;
}

/**
 * What the stored events of a workflow and the tables disagree about, as sentences; none if they agree. The workflow must have
 * had the level `full` from its start.
 */
export async function checkHistory(database: Database, workflowID: string): Promise<string[]> {
  const check = async (tx: Executor): Promise<string[]> => {
    const events = await tx.run(sql`
      SELECT j.event_type, j.step, j.key, j.details ->> 'start_step' AS start_step
      FROM ${table('journal_events')} AS j
      WHERE j.workflow_id = ${workflowID}
      ORDER BY j.seq, j.part`);
    const steps = await tx.run(sql`
      SELECT o.function_id, o.function_name, o.completed_at_epoch_ms
      FROM ${table('operation_outputs')} AS o
      WHERE o.workflow_uuid = ${workflowID}
      ORDER BY o.function_id`);
    const [workflow] = await tx.run(sql`
      SELECT w.status FROM ${table('workflow_status')} AS w WHERE w.workflow_uuid = ${workflowID}`);
    return compare(derive(events), { steps, status: workflow?.['status'] as string | undefined });
  };
  return database.transaction(check, { isSnapshot: true });
}

function compare(
  derived: DerivedState,
  tables: { readonly steps: readonly Row[]; readonly status: string | undefined },
): string[] {
  const status = ['ENQUEUED', 'DELAYED', 'PENDING'].includes(tables.status ?? '') ? ACTIVE : (tables.status ?? 'none');
  const found = derived.status === status ? [] : [`The events end ${derived.status}, the workflow is ${status}.`];
  const left = new Map(derived.steps);
  for (const { function_id: id, function_name: name, completed_at_epoch_ms: completedAt } of tables.steps) {
    const stepID = id as number;
    if (left.get(stepID) !== String(completedAt)) found.push(`Step ${stepID} (${String(name)}) has no event.`);
    left.delete(stepID);
  }
  for (const stepID of left.keys()) found.push(`An event describes step ${stepID}, which is not recorded.`);
  return found;
}
