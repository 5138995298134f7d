// How much of what happens to workflows is kept, and the names of the events. Names and fields are
// never changed, only added.

/**
 * `changes` keeps what a change would overwrite or what has no other place; a workflow that just runs costs nothing. `full`
 * stores every event in the same commit as its effect. With `off`, runs store none; changes from outside are kept.
 */
export type HistoryLevel = 'off' | 'changes' | 'full';

export const HISTORY_LEVELS: readonly HistoryLevel[] = ['off', 'changes', 'full'];

export const HISTORY_EVENT_TYPES = [
  'WorkflowStarted',
  'ActivityScheduled',
  'ActivityCompleted',
  'ActivityFailed',
  'ActivityRetryScheduled',
  'TimerScheduled',
  'TimerFired',
  'SignalReceived',
  'WorkflowCompleted',
  'WorkflowFailed',
  'WorkflowTimedOut',
  'WorkflowCancelRequested',
  'WorkflowCanceled',
  'WorkflowTaskYielded',
  'AttemptStarted',
  'AttemptLost',
  'WorkflowResumed',
  'WorkflowRewound',
  'WorkflowForked',
  'WorkflowDeadLettered',
  'WorkflowDeleted',
  'WorkflowPatched',
  'DelayChanged',
  'PriorityChanged',
  'ChildWorkflowStarted',
  'ChildWorkflowCompleted',
  'MessageConsumed',
  'ReceiveTimedOut',
  'EventSet',
  'StreamClosed',
  'OutboxPublished',
  'OperationCompleted',
] as const;

/** Stores may hold types that this version does not know. */
export type HistoryEventType = (typeof HISTORY_EVENT_TYPES)[number];
