// The store interface of a history: executions, their events and their timers. It is the seam that a further store would implement;
// one suite of tests holds for all implementations. Engines do not use it: they write through the group writer.
import type { HistoryEventType } from './event.js';

export type ExecutionStatus = 'RUNNING' | 'COMPLETED' | 'FAILED' | 'CANCELED' | 'TIMED_OUT';

export interface Execution {
  readonly workflowID: string;
  /** Stays the same over retries. */
  readonly runID: string;
  readonly name: string;
  readonly status: ExecutionStatus;
  readonly input: unknown;
  readonly result: unknown;
  readonly error: string | null;
  readonly startTime: Date;
  readonly endTime: Date | null;
  /** Grows with every change of state. */
  readonly version: number;
}

export interface NewExecution {
  readonly workflowID: string;
  readonly name: string;
  /** Plain JSON. */
  readonly input?: unknown;
}

export type Completion = {
  /** Refuses the change if the version is no longer this one. */
  readonly version?: number;
} & (
  | { readonly status: 'COMPLETED'; readonly result?: unknown }
  | { readonly status: 'FAILED'; readonly error: string }
  | { readonly status: 'CANCELED' }
  | { readonly status: 'TIMED_OUT' }
);

export interface AppendedEvent {
  /** Counts the events of the workflow from 1. */
  readonly idx: number;
  readonly timestamp: Date;
}

export interface StoredEvent extends AppendedEvent {
  readonly workflowID: string;
  readonly eventType: HistoryEventType | (string & {});
  readonly details: Readonly<Record<string, unknown>>;
}

export interface StoredTimer {
  readonly timerID: string;
  readonly workflowID: string;
  readonly fireAt: Date;
  readonly createdAt: Date;
}

/** Methods that change a workflow reject with a `DBOSNonExistentWorkflowError` if it does not exist. */
export interface HistoryStore {
  /** Rejects with a `DBOSWorkflowIDInUseError` if the ID is taken. */
  createWorkflow(workflow: NewExecution): Promise<Execution>;
  getWorkflow(workflowID: string): Promise<Execution | undefined>;
  /** The newest first. */
  listWorkflows(options?: { readonly status?: ExecutionStatus; readonly limit?: number }): Promise<Execution[]>;
  /** Ends a running workflow. False if it has ended, or has another version. */
  completeWorkflow(workflowID: string, completion: Completion): Promise<boolean>;
  /** Raises the version and returns it; undefined if it is no longer `expected`. */
  bumpVersion(workflowID: string, expected: number): Promise<number | undefined>;
  appendEvent(
    workflowID: string,
    event: { readonly eventType: string; readonly details?: Readonly<Record<string, unknown>> },
  ): Promise<AppendedEvent>;
  getHistory(workflowID: string): Promise<StoredEvent[]>;
  /** Adds a timer, and the event that tells so. Does nothing if it exists. */
  insertTimer(timer: { readonly timerID: string; readonly workflowID: string; readonly fireAt: Date }): Promise<void>;
  /** Takes timers that are due, the earliest first, and marks them as fired. No other caller gets the same. */
  fetchDueTimers(limit: number): Promise<StoredTimer[]>;
  /** Marks a timer as fired. False if it was, or does not exist. */
  markTimerFired(timerID: string): Promise<boolean>;
  getPendingTimers(workflowID?: string): Promise<StoredTimer[]>;
  close(): Promise<void>;
}
