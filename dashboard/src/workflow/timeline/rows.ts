// Turns the timeline that the server returns into rows to draw. Knows nothing of pixels.
import type { Schemas, Workflow } from '../../api/client';
import { isActive } from '../../parts/state';

type ServerTimeline = Schemas['Timeline'];
type ServerRow = Schemas['TimelineRow'];

export type RowKind = 'queue' | ServerRow['kind'];
export type RowTone = 'running' | 'waiting' | 'done' | 'error' | 'cancelled';

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
  readonly step: number | undefined;
  readonly childID: string | undefined;
  /** Attempts that failed. */
  readonly ticks: readonly Tick[];
  /** When a sleep, or the time limit of a wait, ends. */
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

const MARKS: Readonly<Record<string, string>> = {
  AttemptLost: 'process lost',
  WorkflowResumed: 'resumed',
  WorkflowRewound: 'rewound',
  WorkflowCancelRequested: 'cancelled',
  WorkflowTimedOut: 'timed out',
  WorkflowDeadLettered: 'dead letter',
};
const WAITING: ReadonlySet<RowKind> = new Set(['queue', 'sleep', 'wait']);

export function timelineOf(workflow: Workflow, { createdAt, completedAt, rows, marks }: ServerTimeline): Timeline {
  const shown = [...queueRows(workflow), ...rows.map(toRow)];
  const from = shown.reduce((least, row) => Math.min(least, row.from), createdAt);
  const to = shown.reduce((most, row) => Math.max(most, row.to ?? row.from), completedAt ?? createdAt);
  return {
    from,
    to: isActive(workflow) ? undefined : to,
    rows: shown,
    marks: marks.flatMap(({ type, at }) => (MARKS[type] === undefined ? [] : [{ at, label: MARKS[type] }])),
  };
}

function queueRows({ createdAt, dequeuedAt, status, queueName, completedAt }: Workflow): TimelineRow[] {
  const isWaiting = status === 'ENQUEUED' || status === 'DELAYED';
  if (queueName === undefined && !isWaiting) return [];
  return [
    {
      key: 'queue',
      label: queueName === undefined ? 'waits to start' : `queue ${queueName}`,
      kind: 'queue',
      tone: 'waiting',
      from: createdAt,
      to: isWaiting ? undefined : (dequeuedAt ?? completedAt ?? createdAt),
      step: undefined,
      childID: undefined,
      ticks: [],
      dueAt: undefined,
    },
  ];
}

function toRow(row: ServerRow): TimelineRow {
  const { step, name, kind, state, startedAt, endedAt, dueAt, childWorkflowID, retries } = row;
  const from = startedAt ?? retries[0]?.at ?? endedAt ?? 0;
  return {
    key: String(step),
    label: name.replace(/^DBOS\./, ''),
    kind,
    tone: toneOf(state, kind),
    from,
    to: state === 'running' ? undefined : (endedAt ?? from),
    step,
    childID: childWorkflowID ?? undefined,
    ticks: retries.map(({ at, attempt, error }) => ({ at, attempt, error: error ?? 'failed' })),
    dueAt: dueAt ?? undefined,
  };
}

function toneOf(state: ServerRow['state'], kind: RowKind): RowTone {
  switch (state) {
    case 'done':
      return 'done';
    case 'failed':
      return 'error';
    case 'stopped':
      return 'cancelled';
    case 'running':
      return WAITING.has(kind) ? 'waiting' : 'running';
  }
}
