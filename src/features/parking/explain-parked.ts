// Explains what a parked workflow waits for, and what wakes it.
import type { WorkflowRecord } from '../../kernel/workflow/records.js';
import type { Reader } from '../../database/database.js';
import { type AwaitedRow, findWaitsOf } from './waits.sql.js';
import { isEngineToken } from '../../run/rows/owner-tokens.js';
import { NO_TOPIC } from '../message/messages.js';

export interface ParkedFinding {
  readonly reason: 'parked';
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Later times stand for no time at all. */
export const LATEST = 253_402_300_799_000;

/** Undefined for a delayed workflow that has not started. */
export async function explainParked(database: Reader, workflow: WorkflowRecord): Promise<ParkedFinding | undefined> {
  const { workflowID, owner, delayUntil, applicationVersion } = workflow;
  if (!isEngineToken(owner)) return undefined;
  const waits = await findWaitsOf(database, workflowID);
  const until = delayUntil === null || delayUntil > LATEST ? null : delayUntil;
  const time = until === null ? undefined : new Date(until).toISOString();
  const what = waits.map(describeAwaited).join(' or ');
  const wakes =
    waits.length === 0
      ? `It sleeps, or waits to retry a step, until ${time ?? 'an unknown time'}.`
      : `It waits for ${what}${time === undefined ? '' : `, until ${time} at the latest`}.`;
  return {
    reason: 'parked',
    message: `It is parked, out of memory. ${wakes} A process of version "${applicationVersion}" continues it then.`,
    details: { waitsFor: waits.map(awaitedDetail), wakesAt: until, applicationVersion },
  };
}

export function describeAwaited(awaited: AwaitedRow): string {
  switch (awaited.kind) {
    case 'message':
      return awaited.topic === NO_TOPIC ? 'a message without a topic' : `a message of topic "${awaited.topic}"`;
    case 'event':
      return `event "${awaited.key}" of workflow "${awaited.workflowID}"`;
    case 'outcome':
      return `the end of workflow "${awaited.workflowID}"`;
  }
}

export function awaitedDetail(awaited: AwaitedRow): Record<string, unknown> {
  if (awaited.kind !== 'message') return { ...awaited };
  return { kind: 'message', topic: awaited.topic === NO_TOPIC ? null : awaited.topic };
}
