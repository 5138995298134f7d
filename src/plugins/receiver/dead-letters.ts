// Dead letters: messages that could not become workflows, stored in the system database.
import { inspect, type InspectOptions } from 'node:util';
import { excerptOf, type ExcerptLimits } from '../../kernel/base/excerpt.js';
import { type EventDispatchState, RECEIVED_LETTERS, type ReceivedLetter, type Receiving } from '../../run/plugin.js';

/** A message that could not become a workflow. */
export type DeadLetter = ReceivedLetter;

type Stored = Pick<DeadLetter, 'error' | 'message' | 'archivedAt'>;

export function toState(letter: DeadLetter): EventDispatchState {
  const { id, functionName, receivedAt, error, message, archivedAt } = letter;
  const value = toJSON({ error, message, archivedAt });
  return { service: RECEIVED_LETTERS, workflowFnName: functionName, key: id, value, updateTime: receivedAt };
}

export async function listDeadLetters(receiving: Receiving, functionName: string): Promise<DeadLetter[]> {
  const states = await receiving.listStates({ service: RECEIVED_LETTERS, workflowFnName: functionName });
  return states.map(({ key, value, updateTime }) => ({
    id: key,
    functionName,
    receivedAt: updateTime ?? 0,
    ...(JSON.parse(value ?? '{}') as Stored),
  }));
}

export function deleteDeadLetter(receiving: Receiving, functionName: string, id: string): Promise<void> {
  return receiving.deleteState({ service: RECEIVED_LETTERS, workflowFnName: functionName, key: id });
}

/** A message that JSON cannot hold, such as a cyclic one, must not stop the receiver: keep what can be shown of it. */
function toJSON({ error, message, archivedAt }: Stored): string {
  try {
    return JSON.stringify({ error, message, archivedAt }, replaceBinary);
  } catch {
    return JSON.stringify({ error, archivedAt, message: inspect(excerptOf(message, LIMITS).value, SHOWN) });
  }
}

const LIMITS: ExcerptLimits = { nodes: 1000, characters: 100_000, depth: 10 };
const SHOWN: InspectOptions = { customInspect: false, depth: null, maxStringLength: null };

/** `value` has gone through `toJSON` already, which buffers have. Take the bytes from the holder instead. */
function replaceBinary(this: unknown, key: string, value: unknown): unknown {
  const original = (this as Record<string, unknown>)[key];
  if (original instanceof Uint8Array) return { base64: Buffer.from(original).toString('base64') };
  return typeof value === 'bigint' ? value.toString() : value;
}

/** The message with its bytes. What JSON has no form for stays as it was written. */
export function revived(message: unknown): unknown {
  if (Array.isArray(message)) return message.map(revived);
  if (typeof message !== 'object' || message === null) return message;
  const entries = Object.entries(message);
  const [first] = entries;
  if (entries.length === 1 && first?.[0] === 'base64' && typeof first[1] === 'string')
    return Buffer.from(first[1], 'base64');
  return Object.fromEntries(entries.map(([key, value]) => [key, revived(value)]));
}
