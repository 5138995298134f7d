// The events that a run adds to the journal. With level `full` that is everything it records, as a part of the same write;
// otherwise only failed attempts of steps, which are recorded nowhere else.
import { excerptOf } from '../../base/excerpt.js';
import type { HistoryEventType, HistoryLevel } from '../../model/history.js';
import type { StepRecord } from '../../model/records.js';
import type { JournalEntry } from '../../store/journal/journal.js';
import type { NewWorkflow, Outcome } from '../../store/runs/workflows.js';

export interface RunJournalOptions {
  readonly level: HistoryLevel;
  readonly workflowID: string;
  readonly owner: string;
  readonly executorID: string;
}

type RunStep = Omit<StepRecord, 'workflowID' | 'applicationName'>;

/** An event without what all events of a run have. */
interface RunEvent {
  readonly type: HistoryEventType;
  readonly key: string;
  readonly step?: number;
  readonly attempt?: number;
  readonly details: object;
}

const INPUT_LIMITS = { nodes: 2000, characters: 20_000, depth: 20, isTree: true } as const;

export class RunJournal {
  readonly #options: RunJournalOptions;
  /** Events of what is not written by itself. They are part of the next write. */
  #pending: RunEvent[] = [];

  constructor(options: RunJournalOptions) {
    this.#options = options;
  }

  get isFull(): boolean {
    return this.#options.level === 'full';
  }

  /** A claimed run has begun. One that was started here says so with its start. */
  begin(attempt: number): void {
    if (this.isFull) this.#pending.push(attemptStarted(this.#options.owner, attempt));
  }

  /** A sleep has ended, which no checkpoint records. */
  timerFired(stepID: number, firedAt: number): void {
    if (!this.isFull) return;
    const details = { timer_id: `${this.#options.workflowID}:${stepID}`, fired_at: isoTime(firedAt) };
    this.#pending.push({ type: 'TimerFired', step: stepID, details, key: doneKey(stepID, firedAt) });
  }

  /** The events of a checkpoint. */
  recorded(step: RunStep, args?: readonly unknown[]): readonly JournalEntry[] {
    const events = [...this.#takePending(), ...stepEvents(this.#options.workflowID, step, args)];
    const { name, stepID, completedAt } = step;
    const subject = { guard: 'recorded', subject: name, subjectStep: stepID, completedAt } as const;
    return events.map((event) => ({ ...this.#entry(event), ...subject }));
  }

  /** The events of an outcome. */
  ended(status: Outcome['status']): readonly JournalEntry[] {
    const type = status === 'SUCCESS' ? 'WorkflowCompleted' : 'WorkflowFailed';
    const events = [...this.#takePending(), { type, details: {}, key: `outcome:${this.#options.owner}` } as const];
    return events.map((event) => ({ ...this.#entry(event), guard: 'ended', subject: status }));
  }

  /** A failed attempt of a step that will be repeated; undefined if the level is `off`. */
  retryScheduled(
    { stepID, name }: { readonly stepID: number; readonly name: string },
    { attempt, error, delayMs }: { readonly attempt: number; readonly error: unknown; readonly delayMs: number },
  ): JournalEntry | undefined {
    if (this.#options.level === 'off') return undefined;
    const details = { activity_name: name, attempt: attempt + 1, delay: delayMs, error: shownError(error) };
    const key = `step:${stepID}:retry:${attempt}:${this.#options.owner}`;
    const event: RunEvent = { type: 'ActivityRetryScheduled', step: stepID, attempt, details, key };
    return { ...this.#entry(event), guard: 'owned' };
  }

  #takePending(): readonly RunEvent[] {
    const pending = this.#pending;
    if (pending.length > 0) this.#pending = [];
    return pending;
  }

  #entry(event: RunEvent): JournalEntry {
    const { workflowID, owner, executorID } = this.#options;
    return { ...entryOf(event), workflowID, guard: 'owned', token: owner, executor: executorID };
  }
}

/** The events of a start, for level `full`. */
export function startEvents(workflow: NewWorkflow): readonly JournalEntry[] {
  const { workflowID, creator, owner, executorID } = workflow;
  const events: RunEvent[] = [{ type: 'WorkflowStarted', key: 'started', details: describeStart(workflow) }];
  if (workflow.status === 'PENDING' && owner !== null) events.push(attemptStarted(owner, 1));
  const shared = { workflowID, guard: 'created', token: creator, executor: executorID } as const;
  return events.map((event) => ({ ...entryOf(event), ...shared }));
}

function describeStart(workflow: NewWorkflow): object {
  const { name, className, configName, queueName, priority, queuePartitionKey, timeoutMs } = workflow;
  const { parentWorkflowID, scheduleName, applicationVersion } = workflow;
  const present = {
    class_name: className,
    config_name: configName,
    queue: queueName,
    partition_key: queuePartitionKey,
    timeout_ms: timeoutMs,
    parent_id: parentWorkflowID,
    schedule: scheduleName,
    version: applicationVersion,
  };
  const given = Object.entries(present).filter(([, value]) => value !== null && value !== '');
  return { workflow_name: name, priority, ...Object.fromEntries(given) };
}

function attemptStarted(owner: string, attempt: number): RunEvent {
  return { type: 'AttemptStarted', attempt, details: {}, key: `attempt:${owner}` };
}

/** As the view `history` derives them from the checkpoint. */
function stepEvents(workflowID: string, step: RunStep, args: readonly unknown[] | undefined): RunEvent[] {
  const { stepID, name, error, childWorkflowID } = step;
  const completedAt = step.completedAt ?? 0;
  const begun = `step:${stepID}:begun:${completedAt}`;
  const done = doneKey(stepID, completedAt);
  if (name === 'DBOS.sleep') {
    const details = { timer_id: `${workflowID}:${stepID}`, fire_at: isoTime(Number(step.output)) };
    return [{ type: 'TimerScheduled', step: stepID, details, key: begun }];
  }
  if (name.startsWith('DBOS.') || childWorkflowID !== null) {
    return [{ type: operationType(step), step: stepID, details: describeOperation(step), key: done }];
  }
  const input = args === undefined ? null : excerptOf(args, INPUT_LIMITS).value;
  const duration = step.startedAt === null ? null : completedAt - step.startedAt;
  return [
    { type: 'ActivityScheduled', step: stepID, details: { activity_name: name, input }, key: begun },
    {
      type: error === null ? 'ActivityCompleted' : 'ActivityFailed',
      step: stepID,
      details: { activity_name: name, duration_ms: duration },
      key: done,
    },
  ];
}

const OPERATION_TYPES: Readonly<Record<string, HistoryEventType>> = {
  'DBOS.getResult': 'ChildWorkflowCompleted',
  'DBOS.setEvent': 'EventSet',
  'DBOS.closeStream': 'StreamClosed',
};

function operationType({ name, output }: RunStep): HistoryEventType {
  if (!name.startsWith('DBOS.')) return 'ChildWorkflowStarted';
  if (name.startsWith('DBOS.patch-')) return 'WorkflowPatched';
  if (name !== 'DBOS.recv') return OPERATION_TYPES[name] ?? 'OperationCompleted';
  const isEmpty = output === null || output === 'null' || output.startsWith('{"json":null');
  return isEmpty ? 'ReceiveTimedOut' : 'MessageConsumed';
}

function describeOperation({ name, childWorkflowID }: RunStep): object {
  if (childWorkflowID !== null) return { child_id: childWorkflowID, name };
  return name.startsWith('DBOS.patch-') ? { patch: name.slice('DBOS.patch-'.length) } : { operation: name };
}

function doneKey(stepID: number, completedAt: number): string {
  return `step:${stepID}:done:${completedAt}`;
}

function isoTime(epochMs: number): string | null {
  return Number.isFinite(epochMs) && Math.abs(epochMs) < 8.64e15 ? new Date(epochMs).toISOString() : null;
}

function shownError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error).slice(0, 2000) };
  return { name: error.name, message: error.message.slice(0, 2000) };
}

type Untied = Pick<
  JournalEntry,
  'subject' | 'subjectStep' | 'completedAt' | 'eventType' | 'step' | 'attempt' | 'details' | 'key'
>;

function entryOf({ type, key, step, attempt, details }: RunEvent): Untied {
  return {
    subject: null,
    subjectStep: null,
    completedAt: null,
    eventType: type,
    step: step ?? null,
    attempt: attempt ?? null,
    details: storableJSON(details),
    key,
  };
}

/** Postgres stores neither NUL nor half of a surrogate pair. */
function storableJSON(value: object): string {
  let text: string;
  try {
    text = JSON.stringify(value, (_key, part: unknown) => (typeof part === 'bigint' ? part.toString() : part));
  } catch {
    // An argument whose toJSON fails must not fail the step.
    text = '{}';
  }
  return text.replace(/\\u(?:0000|d[89a-f][0-9a-f]{2})/gi, '\\ufffd');
}
