// `HistoryStore` in memory, for tests and for programs without a database. Everything is lost with the process.
import { type Clock, systemClock } from '../../kernel/base/clock.js';
import { newID } from '../../kernel/base/ids.js';
import { DBOSNonExistentWorkflowError, DBOSWorkflowIDInUseError } from '../../kernel/errors/errors.js';
import type {
  AppendedEvent,
  Completion,
  Execution,
  ExecutionStatus,
  HistoryStore,
  NewExecution,
  StoredEvent,
  StoredTimer,
} from './history-store.sql.js';

interface Kept {
  execution: Execution;
  readonly events: StoredEvent[];
}

const EVENTS_OF_END: Readonly<Record<Completion['status'], readonly string[]>> = {
  COMPLETED: ['WorkflowCompleted'],
  FAILED: ['WorkflowFailed'],
  CANCELED: ['WorkflowCancelRequested', 'WorkflowCanceled'],
  TIMED_OUT: ['WorkflowTimedOut'],
};

export class MemoryHistoryStore implements HistoryStore {
  readonly #clock: Clock;
  readonly #workflows = new Map<string, Kept>();
  readonly #timers = new Map<string, StoredTimer & { fired: boolean }>();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  async createWorkflow({ workflowID, name, input = null }: NewExecution): Promise<Execution> {
    const existing = this.#workflows.get(workflowID)?.execution;
    if (existing) throw new DBOSWorkflowIDInUseError(workflowID, existing.status, existing.name);
    const ended = { result: null, error: null, endTime: null };
    const identity = { workflowID, runID: newID(), name, startTime: this.#now() };
    const execution: Execution = { ...identity, ...ended, status: 'RUNNING', input: copyOf(input), version: 1 };
    this.#workflows.set(workflowID, { execution, events: [] });
    this.#add(workflowID, 'WorkflowStarted', { workflow_name: name });
    return execution;
  }

  async getWorkflow(workflowID: string): Promise<Execution | undefined> {
    return this.#workflows.get(workflowID)?.execution;
  }

  async listWorkflows({
    status,
    limit = 100,
  }: { readonly status?: ExecutionStatus; readonly limit?: number } = {}): Promise<Execution[]> {
    const all = [...this.#workflows.values()].map(({ execution }) => execution);
    const newestFirst = (a: Execution, b: Execution): number =>
      b.startTime.getTime() - a.startTime.getTime() || (b.workflowID > a.workflowID ? 1 : -1);
    return all
      .filter((execution) => status === undefined || execution.status === status)
      .sort(newestFirst)
      .slice(0, limit);
  }

  async completeWorkflow(workflowID: string, completion: Completion): Promise<boolean> {
    const kept = this.#require(workflowID);
    const { execution } = kept;
    if (execution.status !== 'RUNNING') return false;
    if (completion.version !== undefined && completion.version !== execution.version) return false;
    kept.execution = {
      ...execution,
      status: completion.status,
      result: completion.status === 'COMPLETED' ? copyOf(completion.result ?? null) : null,
      error: completion.status === 'FAILED' ? completion.error : null,
      endTime: this.#now(),
      version: execution.version + 1,
    };
    for (const eventType of EVENTS_OF_END[completion.status]) this.#add(workflowID, eventType, {});
    return true;
  }

  async bumpVersion(workflowID: string, expected: number): Promise<number | undefined> {
    const kept = this.#require(workflowID);
    if (kept.execution.version !== expected) return undefined;
    this.#add(workflowID, 'VersionBumped', {});
    return kept.execution.version;
  }

  async appendEvent(
    workflowID: string,
    { eventType, details = {} }: { readonly eventType: string; readonly details?: Readonly<Record<string, unknown>> },
  ): Promise<AppendedEvent> {
    this.#require(workflowID);
    const { idx, timestamp } = this.#add(workflowID, eventType, details);
    return { idx, timestamp };
  }

  async getHistory(workflowID: string): Promise<StoredEvent[]> {
    return [...(this.#workflows.get(workflowID)?.events ?? [])];
  }

  async insertTimer(timer: {
    readonly timerID: string;
    readonly workflowID: string;
    readonly fireAt: Date;
  }): Promise<void> {
    const { timerID, workflowID, fireAt } = timer;
    this.#require(workflowID);
    if (this.#timers.has(timerID)) return;
    this.#timers.set(timerID, { timerID, workflowID, fireAt, createdAt: this.#now(), fired: false });
    this.#add(workflowID, 'TimerScheduled', { timer_id: timerID, fire_at: fireAt.toISOString() });
  }

  async fetchDueTimers(limit: number): Promise<StoredTimer[]> {
    const now = this.#clock.now();
    const due = this.#pending().filter(({ fireAt }) => fireAt.getTime() <= now);
    return due.slice(0, limit).map((timer) => this.#fire(timer));
  }

  async markTimerFired(timerID: string): Promise<boolean> {
    const timer = this.#timers.get(timerID);
    if (!timer || timer.fired) return false;
    this.#fire(timer);
    return true;
  }

  async getPendingTimers(workflowID?: string): Promise<StoredTimer[]> {
    return this.#pending()
      .filter((timer) => workflowID === undefined || timer.workflowID === workflowID)
      .map(shown);
  }

  async close(): Promise<void> {}

  #pending() {
    return [...this.#timers.values()]
      .filter(({ fired }) => !fired)
      .sort((a, b) => a.fireAt.getTime() - b.fireAt.getTime() || (a.timerID < b.timerID ? -1 : 1));
  }

  #fire(timer: StoredTimer & { fired: boolean }): StoredTimer {
    timer.fired = true;
    this.#add(timer.workflowID, 'TimerFired', { timer_id: timer.timerID, fired_at: timer.fireAt.toISOString() });
    return shown(timer);
  }

  #require(workflowID: string): Kept {
    const kept = this.#workflows.get(workflowID);
    if (!kept) throw new DBOSNonExistentWorkflowError(`Workflow ${workflowID} does not exist`);
    return kept;
  }

  #add(workflowID: string, eventType: string, details: Readonly<Record<string, unknown>>): StoredEvent {
    const kept = this.#require(workflowID);
    const idx = kept.events.length + 1;
    const event = { workflowID, idx, eventType, timestamp: this.#now(), details: copyOf(details) };
    kept.events.push(event);
    if (idx > 1) kept.execution = { ...kept.execution, version: kept.execution.version + 1 };
    return event;
  }

  #now(): Date {
    return new Date(this.#clock.now());
  }
}

function shown({ timerID, workflowID, fireAt, createdAt }: StoredTimer): StoredTimer {
  return { timerID, workflowID, fireAt, createdAt };
}

/** As a database would store it. */
function copyOf<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
