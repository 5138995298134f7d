// A state is a shape, a word and a colour: readable without any one of them.
import type { Workflow, WorkflowState } from '../api/client';
import { waitsText } from './waits';

export interface StateLook {
  readonly glyph: string;
  readonly word: string;
  readonly tone: 'running' | 'waiting' | 'done' | 'error' | 'cancelled' | 'dead';
}

export const STATES: Readonly<Record<WorkflowState, StateLook>> = {
  PENDING: { glyph: '●', word: 'running', tone: 'running' },
  ENQUEUED: { glyph: '◷', word: 'waiting', tone: 'waiting' },
  DELAYED: { glyph: '◷', word: 'delayed', tone: 'waiting' },
  SUCCESS: { glyph: '✓', word: 'done', tone: 'done' },
  ERROR: { glyph: '✕', word: 'error', tone: 'error' },
  CANCELLED: { glyph: '⊘', word: 'cancelled', tone: 'cancelled' },
  MAX_RECOVERY_ATTEMPTS_EXCEEDED: { glyph: '☠', word: 'dead letter', tone: 'dead' },
};

export const ALL_STATES = Object.keys(STATES) as WorkflowState[];

/** Text of the server that names a state. */
export function isState(value: unknown): value is WorkflowState {
  return (ALL_STATES as unknown[]).includes(value);
}

/** Of a pending workflow that is out of memory until something comes. */
const PARKED: StateLook = { glyph: '◷', word: 'parked', tone: 'waiting' };

export function State({ status, waits }: { status: WorkflowState; waits?: Workflow['waitingFor'] }) {
  const what = waitsText(waits);
  const { glyph, word, tone } = what === undefined ? STATES[status] : PARKED;
  return (
    <span className={`state ${tone}`} title={what && `waits for ${what}`}>
      <span className="state-glyph" aria-hidden="true">
        {glyph}
        {'\uFE0E'}
      </span>
      {word}
    </span>
  );
}

export function isActive({ status }: Pick<Workflow, 'status'>): boolean {
  return status === 'PENDING' || status === 'ENQUEUED' || status === 'DELAYED';
}
