// Dead letters: messages that could not become workflows, stored in the system database.
import { inspect, type InspectOptions } from 'node:util';
import { excerptOf, type ExcerptLimits } from '../base/excerpt.js';
import type { EventDispatchState, Receiving } from '../engine/plugin.js';

/** A message that could not become a workflow. */
export interface DeadLetter {
  /** The ID that the workflow would have had. Random if the message had none that can be stored. */
  readonly id: string;
  /** The workflow function that the message was for. */
  readonly functionName: string;
  readonly receivedAt: number;
  readonly error: string;
  /** The message as JSON. Bytes are objects with the single field `base64`. A text if it cannot be written as JSON. */
  readonly message: unknown;
}

const SERVICE = 'everstep.receiver.dead-letters';

export function toState(letter: DeadLetter): EventDispatchState {
  const { id, functionName, receivedAt, error, message } = letter;
  const value = toJSON({ error, message });
  return { service: SERVICE, workflowFnName: functionName, key: id, value, updateTime: receivedAt };
}

export async function listDeadLetters(receiving: Receiving, functionName: string): Promise<DeadLetter[]> {
  const states = await receiving.listStates({ service: SERVICE, workflowFnName: functionName });
  return states.map(({ key, value, updateTime }) => ({
    id: key,
    functionName,
    receivedAt: updateTime ?? 0,
    ...(JSON.parse(value ?? '{}') as Pick<DeadLetter, 'error' | 'message'>),
  }));
}

export function deleteDeadLetter(receiving: Receiving, functionName: string, id: string): Promise<void> {
  return receiving.deleteState({ service: SERVICE, workflowFnName: functionName, key: id });
}

/** A message that JSON cannot hold, such as a cyclic one, must not stop the receiver: keep what can be shown of it. */
function toJSON({ error, message }: Pick<DeadLetter, 'error' | 'message'>): string {
  try {
    return JSON.stringify({ error, message }, replaceBinary);
  } catch {
    return JSON.stringify({ error, message: inspect(excerptOf(message, LIMITS).value, SHOWN) });
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
