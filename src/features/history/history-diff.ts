// Compares the histories of two workflows, such as a fork and its original, step by step.
import { isDeepStrictEqual } from 'node:util';
import type { HistoryEvent } from './history.js';
import { toJSON } from './history-export.js';

/** Where two histories differ. An event that one of them lacks is undefined. */
export interface HistoryDifference {
  /** The number of the step, or `outcome`. */
  readonly at: number | 'outcome';
  readonly first?: HistoryEvent;
  readonly second?: HistoryEvent;
}

export interface HistoryDiff {
  /** How many steps are the same, in name, outcome and values. */
  readonly same: number;
  readonly differences: readonly HistoryDifference[];
}

const OUTCOMES = [
  'WorkflowCompleted',
  'WorkflowFailed',
  'WorkflowCanceled',
  'WorkflowTimedOut',
  'WorkflowDeadLettered',
];
/** They say how a step came about, which may differ although it ended the same way. */
const PASSING = ['ActivityScheduled', 'ActivityRetryScheduled', 'TimerFired'];
/** What differs between two runs of the same step. */
const INCIDENTAL = ['duration_ms', 'timer_id', 'fire_at', 'fired_at'];

/** The last event of each step, and the outcome. */
function endsOf(events: readonly HistoryEvent[]): Map<number | 'outcome', HistoryEvent> {
  const ends = new Map<number | 'outcome', HistoryEvent>();
  for (const event of events) {
    if (OUTCOMES.includes(event.type)) ends.set('outcome', event);
    else if (event.step !== undefined && !PASSING.includes(event.type)) ends.set(event.step, event);
  }
  return ends;
}

export function diffEvents(first: readonly HistoryEvent[], second: readonly HistoryEvent[]): HistoryDiff {
  const [left, right] = [endsOf(first), endsOf(second)];
  const places = [...new Set([...left.keys(), ...right.keys()])].sort(
    (a, b) => (a === 'outcome' ? Infinity : a) - (b === 'outcome' ? Infinity : b),
  );
  let same = 0;
  const differences: HistoryDifference[] = [];
  for (const at of places) {
    const [one, other] = [left.get(at), right.get(at)];
    if (one && other && isSame(one, other)) same += at === 'outcome' ? 0 : 1;
    else differences.push({ at, ...(one && { first: one }), ...(other && { second: other }) });
  }
  return { same, differences };
}

function isSame(one: HistoryEvent, other: HistoryEvent): boolean {
  return one.type === other.type && isDeepStrictEqual(comparable(one), comparable(other));
}

function comparable({ details }: HistoryEvent): unknown {
  const lasting = Object.entries(details).filter(([name]) => !INCIDENTAL.includes(name));
  return JSON.parse(toJSON(Object.fromEntries(lasting)));
}
