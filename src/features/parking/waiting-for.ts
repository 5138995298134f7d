// What workflows wait for, as users see it: those that are parked in lists and in their status, and any in an explanation.
import { utcText } from '../../kernel/base/clock.js';
import type { WorkflowRecord } from '../../kernel/workflow/records.js';
import { asSeen, isParkedRow } from './parked.sql.js';
import { type AwaitedRow, findParked, type ParkedWorkflow } from './waits.sql.js';
import { NO_TOPIC } from '../message/messages.js';
import type { Operator } from '../../operator/operator.js';

/** What a workflow waits for. `until`, in epoch milliseconds, is when it continues at the latest, if there is a limit. */
export type WaitingFor =
  | { readonly kind: 'sleep'; readonly until: number }
  /** The next attempt of a step that has failed. */
  | { readonly kind: 'retry'; readonly stepID: number; readonly failedAttempts: number; readonly until: number }
  /** The topic is null for a message without one. */
  | { readonly kind: 'message'; readonly topic: string | null; readonly until?: number }
  | { readonly kind: 'event'; readonly workflowID: string; readonly key: string; readonly until?: number }
  /** The end of another workflow. */
  | { readonly kind: 'workflow'; readonly workflowID: string; readonly until?: number };

/** A row with what it waits for, if it is parked. */
export interface WaitingRecord extends WorkflowRecord {
  readonly waitingFor?: WaitingFor[];
}

/** Things that one workflow waits for, of which a list shows no more. */
const SHOWN_MAX = 20;
/** Later times stand for no time at all. */
export const LATEST = 253_402_300_799_000;

/** The rows as users see them, with what the parked ones wait for. Costs nothing if none is parked. */
export async function withWaits(
  operator: Pick<Operator, 'database' | 'retrying'>,
  records: readonly WorkflowRecord[],
): Promise<WaitingRecord[]> {
  const parkedIDs = records.filter(isParkedRow).map(({ workflowID }) => workflowID);
  const found =
    parkedIDs.length === 0
      ? new Map<string, ParkedWorkflow>()
      : await operator.retrying(() => findParked(operator.database, parkedIDs, SHOWN_MAX));
  return records.map((record) => {
    // One that was woken meanwhile waits no more.
    const parked = isParkedRow(record) ? found.get(record.workflowID) : undefined;
    return parked ? { ...asSeen(record), waitingFor: waitsOfParked(parked) } : asSeen(record);
  });
}

/** Everything that it waits for. */
export function waitsOfParked({ dueAt, awaited, retry }: ParkedWorkflow): WaitingFor[] {
  if (awaited.length > 0) return awaited.map((one) => toWaitingFor(one, dueAt));
  return [retry ? { kind: 'retry', ...retry, until: dueAt } : { kind: 'sleep', until: dueAt }];
}

export function toWaitingFor(awaited: AwaitedRow, dueAt: number | undefined): WaitingFor {
  const limit = dueAt === undefined || dueAt > LATEST ? {} : { until: dueAt };
  switch (awaited.kind) {
    case 'message':
      return { kind: 'message', topic: awaited.topic === NO_TOPIC ? null : awaited.topic, ...limit };
    case 'event':
      return { kind: 'event', workflowID: awaited.workflowID, key: awaited.key, ...limit };
    case 'outcome':
      return { kind: 'workflow', workflowID: awaited.workflowID, ...limit };
  }
}

/** When it continues at the latest; null if nothing but what it waits for ends the wait. */
export function earliestOf(waits: readonly WaitingFor[]): number | null {
  const ends = waits.flatMap(({ until }) => (until === undefined ? [] : [until]));
  return ends.length === 0 ? null : Math.min(...ends);
}

/** As in "It waits for a message of topic "approval", until 2027-01-01T00:00:00.000Z at the latest". */
export function describeWaits(waits: readonly WaitingFor[]): string {
  const [first] = waits;
  const until = earliestOf(waits);
  const time = until === null ? '' : utcText(Math.ceil(until));
  if (!first || first.kind === 'sleep') return `sleeps until ${time}`;
  if (first.kind === 'retry') {
    return `retries step ${first.stepID} at ${time}, after ${first.failedAttempts} failed attempt(s)`;
  }
  return `waits for ${waits.map(describeWait).join(' or ')}${time === '' ? '' : `, until ${time} at the latest`}`;
}

function describeWait(wait: WaitingFor): string {
  switch (wait.kind) {
    case 'sleep':
      return 'the end of a sleep';
    case 'retry':
      return `the next attempt of step ${wait.stepID}`;
    case 'message':
      return wait.topic === null ? 'a message without a topic' : `a message of topic "${wait.topic}"`;
    case 'event':
      return `event "${wait.key}" of workflow "${wait.workflowID}"`;
    case 'workflow':
      return `the end of workflow "${wait.workflowID}"`;
  }
}
