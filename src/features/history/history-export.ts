// The history of a workflow as text for other programs: JSON lines, or the JSON of Temporal's history, which its viewers read.
import { utcText } from '../../kernel/base/clock.js';
import type { HistoryEvent } from './history.js';

export type HistoryFormat = 'ndjson' | 'temporal';

/** The events as chunks of text. */
export async function* exportEvents(
  events: AsyncIterable<HistoryEvent>,
  format: HistoryFormat,
): AsyncGenerator<string, void, undefined> {
  if (format === 'ndjson') {
    for await (const event of events) yield `${toJSON(event)}\n`;
    return;
  }
  const translator = new TemporalTranslator();
  let separator = '';
  yield '{"events":[';
  for await (const event of events) {
    yield `${separator}${toJSON(translator.translate(event))}`;
    separator = ',\n';
  }
  yield ']}\n';
}

/** Errors have no members that JSON shows, and big integers have no form in it. */
export function toJSON(value: unknown): string {
  const seen = (_key: string, part: unknown): unknown => {
    if (part instanceof Error) return { name: part.name, message: part.message };
    return typeof part === 'bigint' ? part.toString() : part;
  };
  try {
    return JSON.stringify(value, seen) ?? 'null';
  } catch {
    // A payload with a cycle.
    return JSON.stringify(String(value));
  }
}

interface Translation {
  /** Without the prefix EVENT_TYPE_. */
  readonly type: string;
  readonly attributes: (details: Readonly<Record<string, unknown>>, event: HistoryEvent) => object;
}

const failureOf = ({ error }: Readonly<Record<string, unknown>>): object => ({
  failure: { message: error instanceof Error ? error.message : typeof error === 'string' ? error : toJSON(error) },
});

const TRANSLATIONS: Readonly<Record<string, Translation>> = {
  WorkflowStarted: {
    type: 'WORKFLOW_EXECUTION_STARTED',
    attributes: (details, { workflowID }) => ({
      workflowId: workflowID,
      workflowType: { name: details['workflow_name'] },
      taskQueue: { name: details['queue'] ?? '' },
      input: payloads(details['input']),
    }),
  },
  ActivityScheduled: {
    type: 'ACTIVITY_TASK_SCHEDULED',
    attributes: (details, { step }) => ({
      activityId: String(step),
      activityType: { name: details['activity_name'] },
      input: payloads(details['input']),
    }),
  },
  ActivityCompleted: {
    type: 'ACTIVITY_TASK_COMPLETED',
    attributes: (details) => ({ result: payloads(details['result']) }),
  },
  ActivityFailed: { type: 'ACTIVITY_TASK_FAILED', attributes: failureOf },
  TimerScheduled: { type: 'TIMER_STARTED', attributes: (details) => ({ timerId: details['timer_id'] }) },
  TimerFired: { type: 'TIMER_FIRED', attributes: (details) => ({ timerId: details['timer_id'] }) },
  SignalReceived: {
    type: 'WORKFLOW_EXECUTION_SIGNALED',
    attributes: (details) => ({ signalName: details['signal_name'] ?? '', input: payloads(details['input']) }),
  },
  WorkflowCompleted: {
    type: 'WORKFLOW_EXECUTION_COMPLETED',
    attributes: (details) => ({ result: payloads(details['result']) }),
  },
  WorkflowFailed: { type: 'WORKFLOW_EXECUTION_FAILED', attributes: failureOf },
  WorkflowTimedOut: { type: 'WORKFLOW_EXECUTION_TIMED_OUT', attributes: () => ({}) },
  WorkflowCancelRequested: {
    type: 'WORKFLOW_EXECUTION_CANCEL_REQUESTED',
    attributes: (details, { actor }) => ({ cause: details['reason'] ?? '', identity: actor ?? '' }),
  },
  WorkflowCanceled: { type: 'WORKFLOW_EXECUTION_CANCELED', attributes: () => ({}) },
  ChildWorkflowStarted: { type: 'CHILD_WORKFLOW_EXECUTION_STARTED', attributes: childOf },
  ChildWorkflowCompleted: { type: 'CHILD_WORKFLOW_EXECUTION_COMPLETED', attributes: childOf },
};

/** What Temporal does not know is a marker. */
const MARKER: Translation = {
  type: 'MARKER_RECORDED',
  attributes: (details, { type }) => ({ markerName: type, details: { data: payloads(details) } }),
};

function childOf(details: Readonly<Record<string, unknown>>): object {
  return {
    workflowExecution: { workflowId: details['child_id'] },
    workflowType: { name: details['name'] },
    ...('result' in details && { result: payloads(details['result']) }),
  };
}

/** JSON in Temporal's envelope. */
function payloads(value: unknown): object | undefined {
  if (value === undefined) return undefined;
  const encode = (text: string): string => Buffer.from(text).toString('base64');
  return { payloads: [{ metadata: { encoding: encode('json/plain') }, data: encode(toJSON(value)) }] };
}

/** Numbers the events, and refers from the end of a step or timer to its beginning. */
class TemporalTranslator {
  #number = 0;
  readonly #begun = new Map<number, string>();

  translate(event: HistoryEvent): object {
    this.#number += 1;
    const { type, attributes } = TRANSLATIONS[event.type] ?? MARKER;
    return {
      eventId: String(this.#number),
      eventTime: utcText(event.at),
      eventType: `EVENT_TYPE_${type}`,
      [`${camelCase(type)}EventAttributes`]: { ...attributes(event.details, event), ...this.#reference(event) },
    };
  }

  #reference({ type, step }: HistoryEvent): object {
    if (step === undefined) return {};
    if (type === 'ActivityScheduled' || type === 'TimerScheduled') this.#begun.set(step, String(this.#number));
    const begun = this.#begun.get(step);
    if (begun === undefined) return {};
    if (type === 'TimerFired') return { startedEventId: begun };
    return type === 'ActivityCompleted' || type === 'ActivityFailed' ? { scheduledEventId: begun } : {};
  }
}

function camelCase(type: string): string {
  return type.toLowerCase().replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}
