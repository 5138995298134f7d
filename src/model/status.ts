// The states of a workflow and the transitions between them. The store's statements state their guards in SQL; a test holds
// them to this table.
//
//   (new) ──► PENDING ──► SUCCESS | ERROR
//   (new) ──► ENQUEUED ──claim──► PENDING
//   (new) ──► DELAYED ──due──► ENQUEUED
//   DELAYED | ENQUEUED ──delay──► DELAYED
//   PENDING ──recover──► ENQUEUED            its process is gone
//   PENDING ──give up──► MAX_RECOVERY_ATTEMPTS_EXCEEDED
//   any but SUCCESS, ERROR ──cancel──► CANCELLED
//   any but SUCCESS, ERROR ──resume──► ENQUEUED
//   PENDING | ENQUEUED | DELAYED ──time out──► CANCELLED
//   any that has ended ──rewind──► ENQUEUED
//   any ──delete──► (gone)
//   any that has ended ──collect──► (gone)   garbage collection
//   any ──fork──► as it was, and (new) ──► ENQUEUED

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

interface Transition {
  readonly from: readonly WorkflowStatusString[];
  /** Null: the workflow is gone. */
  readonly to: WorkflowStatusString | null;
}

const ACTIVE = ['PENDING', 'ENQUEUED', 'DELAYED'] as const;
const UNFINISHED = [...ACTIVE, 'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED'] as const;
const ENDED = ['SUCCESS', 'ERROR', 'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED'] as const;

export const TRANSITIONS = {
  succeed: { from: ['PENDING'], to: 'SUCCESS' },
  fail: { from: ['PENDING'], to: 'ERROR' },
  claim: { from: ['ENQUEUED'], to: 'PENDING' },
  comeDue: { from: ['DELAYED'], to: 'ENQUEUED' },
  delay: { from: ['DELAYED', 'ENQUEUED'], to: 'DELAYED' },
  recover: { from: ['PENDING'], to: 'ENQUEUED' },
  giveUp: { from: ['PENDING'], to: 'MAX_RECOVERY_ATTEMPTS_EXCEEDED' },
  cancel: { from: UNFINISHED, to: 'CANCELLED' },
  resume: { from: UNFINISHED, to: 'ENQUEUED' },
  timeOut: { from: ACTIVE, to: 'CANCELLED' },
  rewind: { from: ENDED, to: 'ENQUEUED' },
  delete: { from: [...ACTIVE, ...ENDED], to: null },
  collect: { from: ENDED, to: null },
} as const satisfies Record<string, Transition>;

/** Whether the workflow still has work to do: it runs, waits in a queue, or waits for its time. */
export function isActive(status: WorkflowStatusString): boolean {
  return status === 'PENDING' || status === 'ENQUEUED' || status === 'DELAYED';
}
