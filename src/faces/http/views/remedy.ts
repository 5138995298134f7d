// What helps a workflow that does not get on: the action that its explanation suggests.
import type { ExplanationReason, WorkflowExplanation } from '../../../features/diagnosis/explain.js';

export const REMEDIES = [
  'fork',
  'resume',
  'start-now',
  'send-message',
  'resume-queue',
  'register-queue',
  'change-queue',
  'set-priority',
  'recover-executor',
  'start-executor',
] as const;

export type RemedyKind = (typeof REMEDIES)[number];

export interface Remedy {
  readonly kind: RemedyKind;
  /** What to do, for people. */
  readonly label: string;
}

const START: Remedy = { kind: 'start-executor', label: 'Start a process that can run it.' };
const RAISE: Remedy = { kind: 'change-queue', label: 'Raise the limit of the queue.' };

const BY_REASON: Readonly<Partial<Record<ExplanationReason, Remedy>>> = {
  failed: { kind: 'fork', label: 'Fork it from the step that failed.' },
  cancelled: { kind: 'resume', label: 'Resume it.' },
  'dead-lettered': { kind: 'resume', label: 'Find out why its process dies, then resume it.' },
  delayed: { kind: 'start-now', label: 'Start it now.' },
  paused: { kind: 'resume-queue', label: 'Resume the queue.' },
  diverged: { kind: 'fork', label: 'Deploy code that fits its history, or fork it from a step before the change.' },
  'executor-gone': { kind: 'recover-executor', label: 'Recover the workflows of its executor.' },
  'no-partition-key': { kind: 'resume', label: 'Resume it into another queue.' },
  'no-executor-of-application': START,
  'no-executor-of-version': { kind: 'fork', label: 'Fork it to a version that runs, or start a process of its own.' },
  'function-not-registered': START,
  'format-not-readable': START,
  concurrency: RAISE,
  'worker-concurrency': RAISE,
  'rate-limit': RAISE,
  'partition-concurrency': RAISE,
  'partition-worker-concurrency': RAISE,
  'partition-rate-limit': RAISE,
  'waiting-its-turn': { kind: 'set-priority', label: 'Give it a higher priority.' },
};

/** Null if nothing has to be done, or nothing can be. */
export function remedyOf({ reason, details }: WorkflowExplanation): Remedy | null {
  if (reason === 'queue-not-served') {
    return details['isRegistered'] === false ? { kind: 'register-queue', label: 'Register the queue.' } : START;
  }
  const awaited = (details['waitsFor'] ?? []) as readonly { readonly kind: string }[];
  if (awaited.some(({ kind }) => kind === 'message')) return { kind: 'send-message', label: 'Send it the message.' };
  return BY_REASON[reason] ?? null;
}
