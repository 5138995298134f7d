// Explains what a workflow that is in memory waits for. The process that runs it knows all of its waits. Other processes see
// in the database when a sleep or the time limit of a wait ends, but not for what it waits.
import { utcText } from '../../kernel/base/clock.js';
import { dueOf, isTimeLimit } from '../../kernel/workflow/time-limits.js';
import type { WorkflowRecord } from '../../kernel/workflow/records.js';
import { listLastSpans } from '../history/spans.sql.js';
import type { Operator } from '../../operator/operator.js';
import { describeWaits, earliestOf, LATEST, toWaitingFor, type WaitingFor } from './waiting-for.js';

export interface WaitingFinding {
  readonly reason: 'waiting';
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Undefined if it is not known to wait. */
export async function explainWaiting(
  operator: Operator,
  workflow: WorkflowRecord,
): Promise<WaitingFinding | undefined> {
  const waits = operator.waitsOf?.(workflow.workflowID) ?? [];
  const ends = waits.flatMap(({ endsAt }) => endsAt ?? []);
  const dueAt = ends.length === 0 ? undefined : Math.min(...ends);
  const waitsFor = waits.flatMap(({ awaited }) => (awaited ? [toWaitingFor(awaited, dueAt)] : []));
  if (waitsFor.length > 0)
    return toFinding(workflow, describeWaits(waitsFor), { waitsFor, wakesAt: earliestOf(waitsFor) });
  return explainFromRecords(operator, workflow);
}

/** From the last operations: a sleep, or the time limit of an operation that has not ended. */
async function explainFromRecords(operator: Operator, workflow: WorkflowRecord): Promise<WaitingFinding | undefined> {
  const [last, before] = await listLastSpans(operator.database, workflow.workflowID, 2);
  const dueAt = last?.name === 'DBOS.sleep' ? dueOf(last.due) : null;
  if (!last || dueAt === null || dueAt <= operator.databaseClock.now()) return undefined;
  if (!isTimeLimit(last)) {
    const waitsFor = [{ kind: 'sleep', until: dueAt }] as const;
    return toFinding(workflow, describeWaits(waitsFor), { waitsFor, wakesAt: dueAt });
  }
  // The operation has the number before that of its limit.
  if (before?.step === last.step - 1) return undefined;
  const wakesAt = dueAt > LATEST ? null : dueAt;
  const limit = wakesAt === null ? '' : `, until ${utcText(wakesAt)} at the latest`;
  const what = `waits for a message, an event or a workflow${limit}; only its own process knows for what`;
  return toFinding(workflow, what, { waitsFor: null, wakesAt });
}

function toFinding(
  { executorID, startedAt }: WorkflowRecord,
  what: string,
  { waitsFor, wakesAt }: { readonly waitsFor: readonly WaitingFor[] | null; readonly wakesAt: number | null },
): WaitingFinding {
  return {
    reason: 'waiting',
    message: `It ${what}. It is in the memory of executor "${executorID}".`,
    details: { executorID, startedAt, waitsFor, wakesAt },
  };
}
