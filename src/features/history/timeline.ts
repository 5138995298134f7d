// The timeline of a workflow: its operations as bars, with retries, waits and children, and what happened to it as marks.
//
// Checkpoints say when operations began and ended. The rest follows from the history: failed attempts, and operations in
// flight as far as they are recorded. A wait with a time limit records the limit as a sleep under the next number, which
// ends when it begins; so a limit without its operation is a wait in flight.
import type { WorkflowRecord } from '../../kernel/workflow/records.js';
import { dueOf, isTimeLimit } from '../../kernel/workflow/time-limits.js';
import { hasEnded } from '../../kernel/workflow/status.js';
import { asSeen } from '../parking/parked.sql.js';
import { listSpans, type StepSpan } from './spans.sql.js';
import { findWorkflows } from '../../run/rows/workflows.js';
import { readNow } from '../../database/now.js';
import type { Operator } from '../../operator/operator.js';
import { getHistory, type HistoryEvent } from './history.js';

export type TimelineKind = 'step' | 'sleep' | 'wait' | 'child' | 'message' | 'event' | 'stream' | 'operation';
export type TimelineState = 'done' | 'failed' | 'running' | 'stopped';

/** A failed attempt. */
export interface TimelineRetry {
  readonly attempt: number;
  readonly at: number;
  readonly error: string | null;
}

export interface TimelineRow {
  readonly step: number;
  readonly name: string;
  readonly kind: TimelineKind;
  readonly state: TimelineState;
  readonly startedAt: number | null;
  /** Null while it runs. */
  readonly endedAt: number | null;
  /** When a sleep, or the time limit of a wait, ends. */
  readonly dueAt: number | null;
  readonly childWorkflowID: string | null;
  readonly retries: readonly TimelineRetry[];
}

/** Something that happened to the workflow as a whole. */
export interface TimelineMark {
  readonly type: string;
  readonly at: number;
  readonly attempt: number | null;
  readonly executor: string | null;
  readonly actor: string | null;
}

export interface Timeline {
  readonly workflowID: string;
  readonly status: WorkflowRecord['status'];
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly completedAt: number | null;
  /** By the database's clock. */
  readonly now: number;
  readonly rows: readonly TimelineRow[];
  readonly marks: readonly TimelineMark[];
  /** Pass it as `after` for the next operations; null after the last. */
  readonly nextAfter: number | null;
}

export interface TimelineQuery {
  readonly after?: number | undefined;
  readonly limit: number;
}

const RETRY = 'ActivityRetryScheduled';
const BEGUN = 'ActivityScheduled';
const MARKS = [
  'AttemptStarted',
  'AttemptLost',
  'SignalReceived',
  'WorkflowResumed',
  'WorkflowRewound',
  'WorkflowForked',
  'WorkflowCancelRequested',
  'WorkflowCanceled',
  'WorkflowTimedOut',
  'WorkflowDeadLettered',
  'WorkflowTaskYielded',
  'DelayChanged',
  'PriorityChanged',
];
/** A workflow may have been retried a million times; more than this is not drawn. */
const EVENTS_MAX = 10_000;
const WAITS = ['DBOS.recv', 'DBOS.getEvent', 'DBOS.getResult', 'DBOS.waitFirst', 'DBOS.waitAll', 'DBOS.wait'];
const KINDS: Readonly<Record<string, TimelineKind>> = {
  ...Object.fromEntries(WAITS.map((name) => [name, 'wait' as const])),
  'DBOS.send': 'message',
  'DBOS.setEvent': 'event',
  'DBOS.writeStream': 'stream',
  'DBOS.closeStream': 'stream',
};

/** Undefined if the workflow does not exist. */
export async function getTimeline(
  operator: Operator,
  workflowID: string,
  { after = -1, limit }: TimelineQuery,
): Promise<Timeline | undefined> {
  const { database } = operator;
  const [workflow] = await operator.retrying(() => findWorkflows(database, [workflowID]));
  if (!workflow) return undefined;
  const { now } = await operator.retrying(() => readNow(database));
  // One more shows whether there are others behind it.
  const found = await operator.retrying(() => listSpans(database, { workflowID, after, limit: limit + 1 }));
  const spans = found.slice(0, limit);
  const nextAfter = found.length > limit ? (spans.at(-1)?.step ?? null) : null;
  const isShown = ({ step }: HistoryEvent): boolean =>
    step === undefined || (step > after && (nextAfter === null || step <= nextAfter));
  const events = (await readEvents(operator, workflowID)).filter(isShown);
  const { status, createdAt, startedAt, completedAt } = asSeen(workflow);
  return {
    ...{ workflowID, status, createdAt, startedAt, completedAt, now },
    rows: rowsOf(spans, events, { now, stoppedAt: hasEnded(status) ? completedAt : null, isEnded: hasEnded(status) }),
    marks: events.filter(({ type }) => MARKS.includes(type)).map(toMark),
    nextAfter,
  };
}

async function readEvents(operator: Operator, workflowID: string): Promise<HistoryEvent[]> {
  const events: HistoryEvent[] = [];
  const options = { types: [RETRY, BEGUN, ...MARKS], limit: EVENTS_MAX };
  for await (const event of getHistory(operator, workflowID, options)) events.push(event);
  return events;
}

function toMark({ type, at, attempt, executor, actor }: HistoryEvent): TimelineMark {
  return { type, at, attempt: attempt ?? null, executor: executor ?? null, actor: actor ?? null };
}

interface Moment {
  readonly now: number;
  readonly isEnded: boolean;
  readonly stoppedAt: number | null;
}

function rowsOf(spans: readonly StepSpan[], events: readonly HistoryEvent[], moment: Moment): TimelineRow[] {
  const limits = new Map(spans.filter(isTimeLimit).map((span) => [span.step - 1, span]));
  const retries = retriesOf(events);
  const rows = spans
    .filter((span) => !isTimeLimit(span))
    .map((span) => toRow(span, moment, limits.get(span.step), retries.get(span.step) ?? []));
  const known = new Set(rows.map(({ step }) => step));
  const waits = [...limits].filter(([step]) => !known.has(step)).map(([step, limit]) => openWait(step, limit, moment));
  for (const { step } of waits) known.add(step);
  const open = new Map(
    events.flatMap((event) =>
      event.step === undefined || known.has(event.step)
        ? []
        : [[event.step, openStep(event, moment, retries.get(event.step) ?? [])] as const],
    ),
  );
  return [...rows, ...waits, ...open.values()].sort((a, b) => a.step - b.step);
}

function toRow(
  span: StepSpan,
  { now, isEnded, stoppedAt }: Moment,
  limit: StepSpan | undefined,
  retries: readonly TimelineRetry[],
): TimelineRow {
  const { step, name, startedAt, childWorkflowID, hasFailed } = span;
  const dueAt = dueOf(span.due ?? limit?.due ?? null);
  const isSleeping = name === 'DBOS.sleep' && dueAt !== null && dueAt > (stoppedAt ?? now);
  const state = isSleeping ? openState(isEnded) : hasFailed ? 'failed' : 'done';
  const endedAt = isSleeping ? stoppedAt : span.endedAt;
  return { step, name, kind: kindOf(span), state, startedAt, endedAt, dueAt, childWorkflowID, retries };
}

function kindOf({ name, childWorkflowID }: StepSpan): TimelineKind {
  if (name === 'DBOS.sleep') return 'sleep';
  const kind = KINDS[name];
  if (kind) return kind;
  if (childWorkflowID !== null) return 'child';
  return name.startsWith('DBOS.') ? 'operation' : 'step';
}

function openState(isEnded: boolean): TimelineState {
  return isEnded ? 'stopped' : 'running';
}

function openWait(step: number, limit: StepSpan, { isEnded, stoppedAt }: Moment): TimelineRow {
  return {
    ...{ step, name: 'DBOS.wait', kind: 'wait', state: openState(isEnded) },
    ...{ startedAt: limit.startedAt, endedAt: stoppedAt, dueAt: dueOf(limit.due) },
    ...{ childWorkflowID: null, retries: [] },
  };
}

/** A step that is recorded as begun or failed, but not as ended. */
function openStep(event: HistoryEvent, { isEnded, stoppedAt }: Moment, retries: readonly TimelineRetry[]): TimelineRow {
  const name = event.details['activity_name'];
  return {
    ...{ step: event.step ?? 0, name: typeof name === 'string' ? name : '', kind: 'step' },
    ...{ state: openState(isEnded), startedAt: Math.min(event.at, ...retries.map(({ at }) => at)), endedAt: stoppedAt },
    ...{ dueAt: null, childWorkflowID: null, retries },
  };
}

function retriesOf(events: readonly HistoryEvent[]): Map<number, TimelineRetry[]> {
  const retries = new Map<number, TimelineRetry[]>();
  for (const { type, step, at, attempt = 0, details } of events) {
    if (type !== RETRY || step === undefined) continue;
    const known = retries.get(step) ?? [];
    retries.set(step, known);
    known.push({ attempt, at, error: errorText(details['error']) });
  }
  return retries;
}

function errorText(error: unknown): string | null {
  if (typeof error !== 'object' || error === null) return typeof error === 'string' ? error : null;
  const { name, message } = error as Readonly<Record<string, unknown>>;
  return [name, message].filter((part) => typeof part === 'string' && part !== '').join(': ') || null;
}
