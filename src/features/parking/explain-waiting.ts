// Explains what a workflow that is in memory waits for. The process that runs it knows all of its waits. Other processes see
// in the database when a sleep or the time limit of a wait ends, but not for what it waits.
import { dueOf, isTimeLimit } from '../../kernel/workflow/time-limits.js';
import type { WorkflowRecord } from '../../kernel/workflow/records.js';
import { listLastSpans } from '../history/spans.sql.js';
import type { Operator } from '../../operator/operator.js';
import type { Wait } from '../../operator/row-watcher.js';
import { awaitedDetail, describeAwaited, LATEST } from './explain-parked.js';

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
  const awaited = waits.flatMap((wait) => wait.awaited ?? []);
  if (awaited.length > 0) {
    const what = `waits for ${awaited.map(describeAwaited).join(' or ')}${limitText(earliest(waits))}`;
    return toFinding(workflow, what, { waitsFor: awaited.map(awaitedDetail), wakesAt: earliest(waits) });
  }
  return explainFromRecords(operator, workflow);
}

/** From the last operations: a sleep, or the time limit of an operation that has not ended. */
async function explainFromRecords(operator: Operator, workflow: WorkflowRecord): Promise<WaitingFinding | undefined> {
  const [last, before] = await listLastSpans(operator.database, workflow.workflowID, 2);
  const dueAt = last?.name === 'DBOS.sleep' ? dueOf(last.due) : null;
  if (!last || dueAt === null || dueAt <= operator.databaseClock.now()) return undefined;
  if (!isTimeLimit(last)) {
    return toFinding(workflow, `sleeps until ${timeText(dueAt)}`, { waitsFor: [], wakesAt: dueAt });
  }
  // The operation has the number before that of its limit.
  if (before?.step === last.step - 1) return undefined;
  const wakesAt = dueAt > LATEST ? null : dueAt;
  const what = `waits for a message, an event or a workflow${limitText(wakesAt)}; only its own process knows for what`;
  return toFinding(workflow, what, { waitsFor: null, wakesAt });
}

/** When the first of the waits ends by itself; null for never. */
function earliest(waits: readonly Wait[]): number | null {
  const ends = waits.flatMap(({ endsAt }) => (endsAt === undefined || endsAt > LATEST ? [] : [endsAt]));
  return ends.length === 0 ? null : Math.min(...ends);
}

function toFinding(
  { executorID, startedAt }: WorkflowRecord,
  what: string,
  waits: Readonly<Record<string, unknown>>,
): WaitingFinding {
  return {
    reason: 'waiting',
    message: `It ${what}. It is in the memory of executor "${executorID}".`,
    details: { executorID, startedAt, ...waits },
  };
}

function limitText(endsAt: number | null): string {
  return endsAt === null ? '' : `, until ${timeText(endsAt)} at the latest`;
}

function timeText(epochMs: number): string {
  return new Date(Math.ceil(epochMs)).toISOString();
}
