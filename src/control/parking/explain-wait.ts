// Explains a workflow that is delayed: before its start, or because it waits for long and has left memory.
import type { WorkflowRecord } from '../../model/records.js';
import type { Database } from '../../store/database.js';
import { type Awaited, findAwaited } from '../../store/parking/awaited.js';
import { NO_TOPIC } from '../messaging/messages.js';

export interface WaitFinding {
  readonly reason: 'delayed' | 'sleeping' | 'waiting';
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Waits without a time limit are due later than this. */
const ENDLESS_MS = 50 * 365 * 24 * 60 * 60 * 1000;

export async function explainDelayed(database: Database, workflow: WorkflowRecord): Promise<WaitFinding> {
  const { workflowID, delayUntil, owner, updatedAt } = workflow;
  const details = { delayUntil };
  const until = delayUntil === null ? 'an unknown time' : new Date(delayUntil).toISOString();
  // Parked workflows keep the token of the run that parked them.
  if (!owner?.includes('.')) {
    return { reason: 'delayed', message: `It is delayed until ${until}.`, details };
  }
  const awaited = await findAwaited(database, workflowID);
  const since = new Date(updatedAt).toISOString();
  const isEndless = delayUntil !== null && delayUntil - updatedAt > ENDLESS_MS;
  const [first] = awaited;
  if (!first) {
    return { reason: 'sleeping', message: `It sleeps until ${until}, and left memory at ${since}.`, details };
  }
  const limit = isEndless ? 'without a time limit' : `until ${until} at the latest`;
  const others = awaited.length === 1 ? '' : ` and ${awaited.length - 1} other(s)`;
  return {
    reason: 'waiting',
    message: `It waits for ${named(first)}${others}, ${limit}. It left memory at ${since}.`,
    details: { ...details, awaited: awaited.map(withoutNoTopic) },
  };
}

function named(awaited: Awaited): string {
  switch (awaited.kind) {
    case 'message':
      return awaited.topic === NO_TOPIC ? 'a message' : `a message on topic "${awaited.topic}"`;
    case 'event':
      return `event "${awaited.key}" of workflow "${awaited.workflowID}"`;
    case 'outcome':
      return `the outcome of workflow "${awaited.workflowID}"`;
  }
}

function withoutNoTopic(awaited: Awaited): object {
  if (awaited.kind !== 'message') return awaited;
  return { kind: awaited.kind, topic: awaited.topic === NO_TOPIC ? null : awaited.topic };
}
