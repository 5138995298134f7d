// The events that a run adds to the journal. With level `full` that is everything it records, as a part of the same write;
// otherwise only failed attempts of steps, which are recorded nowhere else.
import { excerptOf } from '../../kernel/base/excerpt.js';
import { storableText } from '../../kernel/base/storable-text.js';
import type { HistoryEventType, HistoryLevel } from './event.js';
import type { StepRecord } from '../../kernel/workflow/records.js';
import type { JournalFact } from './facts.sql.js';
import type { JournalEntry } from './journal.sql.js';
import type { NewWorkflow, Outcome } from '../../run/rows/workflows.js';

export interface RunJournalOptions {
  readonly level: HistoryLevel;
  readonly workflowID: string;
  readonly owner: string;
  readonly executorID: string;
}

type RunStep = Omit<StepRecord, 'workflowID' | 'applicationName'>;

const INPUT_LIMITS = { nodes: 2000, characters: 20_000, depth: 20, isTree: true } as const;

/** A message in an outbox. */
export interface PublishedMessage {
  readonly messageID: string;
  readonly topic: string;
}

/** What a write carries for the journal. */
export interface Carried {
  readonly fact: JournalFact;
  readonly entries?: readonly JournalEntry[];
}

export class RunJournal {
  readonly #options: RunJournalOptions;
  /** Ended sleeps and published messages, which nothing else records. They are part of the next write. */
  #pending: JournalEntry[] = [];
  /** What the transactions in progress have published, by step. */
  #published: Map<number, JournalEntry[]> | undefined;
  /** The number of this attempt, until a write has said it. */
  #attempt: number | null = null;

  constructor(options: RunJournalOptions) {
    this.#options = options;
  }

  get isFull(): boolean {
    return this.#options.level === 'full';
  }

  /** A claimed run has begun. One that was started here says so with its start. */
  begin(attempt: number): void {
    this.#attempt = attempt;
  }

  /** A sleep has ended, which no checkpoint records. */
  timerFired(stepID: number, firedAt: number): void {
    if (!this.isFull) return;
    const details = { timer_id: `${this.#options.workflowID}:${stepID}`, fired_at: isoTime(firedAt) };
    const key = `step:${stepID}:done:${firedAt}`;
    this.#pending.push(this.#entry({ eventType: 'TimerFired', step: stepID, details, completedAt: firedAt, key }));
  }

  /** The function of a transaction is called, possibly again: what an earlier attempt published was rolled back. */
  beginTransaction(stepID: number): void {
    this.#published?.delete(stepID);
  }

  /** A transaction publishes a message. */
  published(stepID: number, { messageID, topic }: PublishedMessage): void {
    if (!this.isFull) return;
    const details = { message_id: messageID, topic };
    const entry = this.#entry({ eventType: 'OutboxPublished', step: stepID, details, key: `outbox:${messageID}` });
    this.#published ??= new Map();
    const others = this.#published.get(stepID);
    if (others) others.push(entry);
    else this.#published.set(stepID, [entry]);
  }

  /** The transaction has committed. */
  commitTransaction(stepID: number): void {
    this.#pending.push(...(this.#published?.get(stepID) ?? []));
    this.#published?.delete(stepID);
  }

  /** Takes back what a checkpoint carries that is written without it. The next write carries it. */
  takeBack({ fact, entries = [] }: Partial<Carried>): void {
    this.#pending.unshift(...entries);
    this.#attempt ??= fact?.attempt ?? null;
  }

  /** What a checkpoint carries. */
  recorded(step: RunStep, args?: readonly unknown[]): Carried {
    return this.#carry(stepType(step), stepDetails(this.#options.workflowID, step, args));
  }

  /** What an outcome carries. */
  ended(status: Outcome['status']): Carried {
    return this.#carry(status === 'SUCCESS' ? 'WorkflowCompleted' : 'WorkflowFailed', null);
  }

  /** A failed attempt of a step that will be repeated; undefined if the level is `off`. */
  retryScheduled(
    { stepID, name }: { readonly stepID: number; readonly name: string },
    { attempt, error, delayMs }: { readonly attempt: number; readonly error: unknown; readonly delayMs: number },
  ): JournalEntry | undefined {
    if (this.#options.level === 'off') return undefined;
    const details = { activity_name: name, attempt: attempt + 1, delay: delayMs, error: shownError(error) };
    const key = `step:${stepID}:retry:${attempt}:${this.#options.owner}`;
    return this.#entry({ eventType: 'ActivityRetryScheduled', step: stepID, attempt, details, key });
  }

  #carry(eventType: HistoryEventType, details: string | null): Carried {
    const fact = { eventType, executor: this.#options.executorID, attempt: this.#attempt, details };
    this.#attempt = null;
    if (this.#pending.length === 0) return { fact };
    const entries = this.#pending;
    this.#pending = [];
    return { fact, entries };
  }

  #entry(event: RunEvent): JournalEntry {
    const { workflowID, owner, executorID } = this.#options;
    const { eventType, step, attempt = null, completedAt = null, key } = event;
    const details = storableJSON(event.details);
    return { workflowID, owner, executor: executorID, eventType, step, attempt, details, completedAt, key };
  }
}

/** An event without what all events of a run have. */
interface RunEvent {
  readonly eventType: HistoryEventType;
  readonly step: number;
  readonly attempt?: number;
  readonly details: object;
  readonly completedAt?: number;
  readonly key: string;
}

/** What a start says about itself, for level `full`. */
export function startFact(workflow: NewWorkflow): JournalFact {
  const isRunning = workflow.status === 'PENDING' && workflow.owner !== null;
  return {
    eventType: 'WorkflowStarted',
    executor: workflow.executorID,
    attempt: isRunning ? 1 : null,
    details: storableJSON(describeStart(workflow)),
  };
}

function describeStart(workflow: NewWorkflow): object {
  const { name, className, configName, queueName, priority, queuePartitionKey, timeoutMs } = workflow;
  const { parentWorkflowID, scheduleName, applicationVersion } = workflow;
  const described: Record<string, unknown> = { workflow_name: name, priority };
  const add = (key: string, value: string | number | null): void => {
    if (value !== null && value !== '') described[key] = value;
  };
  add('class_name', className);
  add('config_name', configName);
  add('queue', queueName);
  add('partition_key', queuePartitionKey);
  add('timeout_ms', timeoutMs);
  add('parent_id', parentWorkflowID);
  add('schedule', scheduleName);
  add('version', applicationVersion);
  return described;
}

/** As the view `history` derives it from the checkpoint. */
function stepType(step: RunStep): HistoryEventType {
  if (step.name === 'DBOS.sleep') return 'TimerScheduled';
  if (step.name.startsWith('DBOS.') || step.childWorkflowID !== null) return operationType(step);
  return step.error === null ? 'ActivityCompleted' : 'ActivityFailed';
}

/** What the columns of the checkpoint do not say. */
function stepDetails(workflowID: string, step: RunStep, args: readonly unknown[] | undefined): string | null {
  const { stepID, name, childWorkflowID } = step;
  if (name === 'DBOS.sleep') {
    return storableJSON({ timer_id: `${workflowID}:${stepID}`, fire_at: isoTime(Number(step.output)) });
  }
  if (name.startsWith('DBOS.') || childWorkflowID !== null) return storableJSON(describeOperation(step));
  return args === undefined ? null : storableJSON({ input: excerptOf(args, INPUT_LIMITS).value });
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

function isoTime(epochMs: number): string | null {
  return Number.isFinite(epochMs) && Math.abs(epochMs) < 8.64e15 ? new Date(epochMs).toISOString() : null;
}

function shownError(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error).slice(0, 2000) };
  return { name: error.name, message: error.message.slice(0, 2000) };
}

function storableJSON(value: object): string {
  try {
    return storableText(value);
  } catch {
    // An argument whose toJSON fails must not fail the step.
    return '{}';
  }
}
