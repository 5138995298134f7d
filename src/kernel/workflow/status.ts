// The states of a workflow, the groups that code asks about, and the transitions. `run/rows/states.ts` makes SQL
// conditions of the groups; a test holds the store's guards to the transitions.
//
//   (new) ──► PENDING ──► SUCCESS | ERROR
//   (new) ──► ENQUEUED ──claim──► PENDING
//   (new) ──► DELAYED ──due──► ENQUEUED
//   DELAYED | ENQUEUED ──delay──► DELAYED
//   PENDING ──park──► PARKED                 its run only waits, and leaves memory
//   PARKED ──wake──► ENQUEUED                what it waits for has come, or its time
//   PARKED | ENQUEUED ──take back──► PENDING the code of the run that parked it goes on all the same
//   PENDING ──continue as new──► ENQUEUED
//   PENDING ──recover──► ENQUEUED            its process is dead
//   PENDING ──dead letter──► MAX_RECOVERY_ATTEMPTS_EXCEEDED
//   any but SUCCESS, ERROR ──cancel──► CANCELLED
//   any but SUCCESS, ERROR ──resume──► ENQUEUED
//   PENDING | ENQUEUED | DELAYED ──time out──► CANCELLED
//   any that has ended ──rewind──► ENQUEUED
//   any ──delete──► (gone)
//   any that has ended ──collect──► (gone)   garbage collection
//   any ──fork──► unchanged, and (new) ──► ENQUEUED
//
// PARKED is stored as DELAYED, with the owner token of the run that has left. Users and all other verbs see it as PENDING
// (`features/parking/parked.sql.ts`).

export const StatusString = {
  PENDING: 'PENDING',
  SUCCESS: 'SUCCESS',
  ERROR: 'ERROR',
  MAX_RECOVERY_ATTEMPTS_EXCEEDED: 'MAX_RECOVERY_ATTEMPTS_EXCEEDED',
  CANCELLED: 'CANCELLED',
  ENQUEUED: 'ENQUEUED',
  DELAYED: 'DELAYED',
} as const;

export type WorkflowStatusString = (typeof StatusString)[keyof typeof StatusString];

// The order within a group is that of the partial index on it: SQLite uses one only where the list is the same.

/** In a queue, or claimed from it. */
export const IN_FLIGHT_STATUSES = ['ENQUEUED', 'PENDING'] as const;
/** Work left to do: running, enqueued or delayed. */
export const ACTIVE_STATUSES = [...IN_FLIGHT_STATUSES, 'DELAYED'] as const;
/** Not started yet. */
export const WAITING_STATUSES = ['ENQUEUED', 'DELAYED'] as const;
/** The function returned or threw. Steps have the same two. */
export const OUTCOME_STATUSES = ['SUCCESS', 'ERROR'] as const;
/** Ended without an outcome; can be resumed. */
export const STOPPED_STATUSES = ['CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED'] as const;
/** Ended without a result. */
export const FAILED_STATUSES = ['ERROR', ...STOPPED_STATUSES] as const;

export type OutcomeStatus = (typeof OUTCOME_STATUSES)[number];

const UNFINISHED = [...ACTIVE_STATUSES, ...STOPPED_STATUSES] as const;
const ENDED = [...OUTCOME_STATUSES, ...STOPPED_STATUSES] as const;

/** The state of a row. */
export type StoredState = WorkflowStatusString | 'PARKED';

/** The states of the rows that users see with this status. */
export function statesSeenAs(status: WorkflowStatusString): readonly StoredState[] {
  return status === 'PENDING' ? ['PENDING', 'PARKED'] : [status];
}

interface Transition {
  readonly from: readonly StoredState[];
  /** Null: the workflow is deleted. */
  readonly to: StoredState | null;
}

export const TRANSITIONS = {
  succeed: { from: ['PENDING'], to: 'SUCCESS' },
  fail: { from: ['PENDING'], to: 'ERROR' },
  claim: { from: ['ENQUEUED'], to: 'PENDING' },
  comeDue: { from: ['DELAYED'], to: 'ENQUEUED' },
  delay: { from: WAITING_STATUSES, to: 'DELAYED' },
  park: { from: ['PENDING'], to: 'PARKED' },
  wake: { from: ['PARKED'], to: 'ENQUEUED' },
  takeBack: { from: ['PARKED', 'ENQUEUED'], to: 'PENDING' },
  continueAsNew: { from: ['PENDING'], to: 'ENQUEUED' },
  recover: { from: ['PENDING'], to: 'ENQUEUED' },
  deadLetter: { from: ['PENDING'], to: 'MAX_RECOVERY_ATTEMPTS_EXCEEDED' },
  cancel: { from: UNFINISHED, to: 'CANCELLED' },
  resume: { from: UNFINISHED, to: 'ENQUEUED' },
  timeOut: { from: ACTIVE_STATUSES, to: 'CANCELLED' },
  rewind: { from: ENDED, to: 'ENQUEUED' },
  delete: { from: [...ACTIVE_STATUSES, ...ENDED], to: null },
  collect: { from: ENDED, to: null },
} as const satisfies Record<string, Transition>;

/** Whether the workflow still has work to do: it runs, is enqueued, or is delayed. */
export function isActive(status: WorkflowStatusString): boolean {
  return isIn(ACTIVE_STATUSES, status);
}

export function hasEnded(status: WorkflowStatusString): boolean {
  return !isActive(status);
}

/** Whether the function returned or threw. Only a rewind runs such a workflow again. */
export function hasOutcome(status: WorkflowStatusString): status is OutcomeStatus {
  return isIn(OUTCOME_STATUSES, status);
}

function isIn(group: readonly WorkflowStatusString[], status: WorkflowStatusString): boolean {
  return group.includes(status);
}
