// Turns a workflow, its steps and some events of its history into the rows of a timeline. Knows nothing of pixels.
import type { Schemas, Workflow } from '../../api/client';
import { isActive } from '../../parts/state';

type Step = Schemas['Step'];
type HistoryEvent = Schemas['HistoryEvent'];

export type RowKind = 'queue' | 'step' | 'sleep' | 'wait' | 'child' | 'operation';
export type RowTone = 'running' | 'waiting' | 'done' | 'error';

export interface Tick {
  readonly at: number;
  readonly attempt: number;
  readonly error: string;
}

export interface TimelineRow {
  readonly key: string;
  readonly label: string;
  readonly kind: RowKind;
  readonly tone: RowTone;
  readonly from: number;
  /** Undefined while it goes on. */
  readonly to: number | undefined;
  readonly step: Step | undefined;
  readonly stepID: number | undefined;
  readonly childID: string | undefined;
  /** Failed attempts that were repeated. */
  readonly ticks: readonly Tick[];
  /** When a sleep or a wait ends by itself. */
  readonly dueAt: number | undefined;
}

/** A moment of the whole workflow, such as the loss of its process. */
export interface Mark {
  readonly at: number;
  readonly label: string;
}

export interface Timeline {
  readonly from: number;
  /** Undefined while the workflow goes on. */
  readonly to: number | undefined;
  readonly rows: readonly TimelineRow[];
  readonly marks: readonly Mark[];
}

const WAITS: Readonly<Record<string, string>> = {
  'DBOS.recv': 'message',
  'DBOS.getEvent': 'event',
  'DBOS.getResult': 'result',
};
const SLEEPS: ReadonlySet<string> = new Set(['DBOS.sleep', 'DBOS.sleepms', 'DBOS.sleepSeconds']);

const MARKS: Readonly<Record<string, string>> = {
  AttemptLost: 'process lost',
  WorkflowResumed: 'resumed',
  WorkflowRewound: 'rewound',
  WorkflowCancelRequested: 'cancelled',
  WorkflowTimedOut: 'timed out',
  WorkflowDeadLettered: 'dead letter',
};

export function timelineOf(workflow: Workflow, steps: readonly Step[], events: readonly HistoryEvent[]): Timeline {
  const ticks = ticksByStep(events);
  const due = dueTimes(events);
  const known = new Set(steps.map(({ functionID }) => functionID));
  const rows = [
    ...queueRow(workflow),
    ...steps.map((step) => stepRow(step, ticks.get(step.functionID) ?? [], due.get(step.functionID))),
    ...openRows(workflow, events, { ticks, due, known }),
  ];
  const isOpen = isActive(workflow);
  const ends = rows.map(({ to }) => to ?? 0);
  const end = Math.max(workflow.completedAt ?? 0, workflow.createdAt, ...chunked(ends));
  return {
    from: Math.min(
      workflow.createdAt,
      ...chunked(
        rows.map(({ from }) => from),
        Math.min,
      ),
    ),
    to: isOpen ? undefined : end,
    rows,
    marks: events.flatMap(({ type, at }) => (MARKS[type] === undefined ? [] : [{ at, label: MARKS[type] }])),
  };
}

/** The largest or smallest of many numbers, as a list of one: too many cannot be spread into a call. */
function chunked(numbers: readonly number[], pick: (a: number, b: number) => number = Math.max): number[] {
  return numbers.length === 0 ? [] : [numbers.reduce((a, b) => pick(a, b))];
}

function queueRow({ createdAt, dequeuedAt, status, queueName, completedAt }: Workflow): TimelineRow[] {
  const isWaiting = status === 'ENQUEUED' || status === 'DELAYED';
  if (queueName === undefined && !isWaiting) return [];
  const to = isWaiting ? undefined : (dequeuedAt ?? completedAt ?? createdAt);
  return [
    {
      key: 'queue',
      label: queueName === undefined ? 'waits to start' : `queue ${queueName}`,
      kind: 'queue',
      tone: 'waiting',
      from: createdAt,
      to,
      step: undefined,
      stepID: undefined,
      childID: undefined,
      ticks: [],
      dueAt: undefined,
    },
  ];
}

function kindOf({ name, childWorkflowID }: Step): RowKind {
  if (SLEEPS.has(name)) return 'sleep';
  if (name in WAITS) return 'wait';
  if (childWorkflowID !== null) return 'child';
  return name.startsWith('DBOS.') ? 'operation' : 'step';
}

function stepRow(step: Step, ticks: readonly Tick[], dueAt: number | undefined): TimelineRow {
  const kind = kindOf(step);
  const ended = step.completedAtEpochMs;
  const from = Math.min(step.startedAtEpochMs ?? ended ?? 0, ...ticks.map(({ at }) => at));
  const isOpen = ended === undefined;
  return {
    key: String(step.functionID),
    label: step.name,
    kind,
    tone: step.error ? 'error' : isOpen ? (kind === 'step' ? 'running' : 'waiting') : 'done',
    from,
    to: ended,
    step,
    stepID: step.functionID,
    childID: step.childWorkflowID ?? undefined,
    ticks,
    dueAt,
  };
}

interface Known {
  readonly ticks: ReadonlyMap<number, readonly Tick[]>;
  readonly due: ReadonlyMap<number, number>;
  readonly known: ReadonlySet<number>;
}

/** Steps that have begun and have no checkpoint yet. */
function openRows(workflow: Workflow, events: readonly HistoryEvent[], { ticks, due, known }: Known): TimelineRow[] {
  if (!isActive(workflow)) return [];
  const begun = new Map<number, HistoryEvent>();
  for (const event of events) {
    const isBegin = ['ActivityScheduled', 'ActivityRetryScheduled', 'TimerScheduled'].includes(event.type);
    if (!isBegin || event.step === undefined || known.has(event.step) || begun.has(event.step)) continue;
    begun.set(event.step, event);
  }
  return [...begun].map(([stepID, event]) => {
    const isTimer = event.type === 'TimerScheduled';
    return {
      key: String(stepID),
      label: textIn(event, 'activity_name') ?? (isTimer ? 'waits' : 'step'),
      kind: isTimer ? 'wait' : 'step',
      tone: isTimer ? 'waiting' : 'running',
      from: event.at,
      to: undefined,
      step: undefined,
      stepID,
      childID: undefined,
      ticks: ticks.get(stepID) ?? [],
      dueAt: due.get(stepID),
    };
  });
}

function ticksByStep(events: readonly HistoryEvent[]): Map<number, Tick[]> {
  const found = new Map<number, Tick[]>();
  for (const event of events) {
    if (event.type !== 'ActivityRetryScheduled' || event.step === undefined) continue;
    const list = found.get(event.step) ?? [];
    const next = Number(event.details['attempt'] ?? list.length + 2);
    list.push({ at: event.at, attempt: next - 1, error: errorText(event.details['error']) });
    found.set(event.step, list);
  }
  return found;
}

function dueTimes(events: readonly HistoryEvent[]): Map<number, number> {
  const found = new Map<number, number>();
  for (const { type, step, details } of events) {
    const at = details['fire_at'];
    if (type === 'TimerScheduled' && step !== undefined && typeof at === 'number') found.set(step, at);
  }
  return found;
}

function textIn({ details }: HistoryEvent, key: string): string | undefined {
  const value = details[key];
  return typeof value === 'string' ? value : undefined;
}

export function errorText(error: unknown): string {
  if (typeof error === 'string') return error;
  const { name, message } = (error ?? {}) as { name?: unknown; message?: unknown };
  if (typeof message === 'string') return typeof name === 'string' ? `${name}: ${message}` : message;
  return error === undefined || error === null ? 'failed' : JSON.stringify(error);
}
