// Dead letters: messages that could not become workflows, stored in the system database.
import type { EventDispatchState, Receiving } from '../engine/plugin.js';

/** A message that could not become a workflow. */
export interface DeadLetter {
  /** The ID that the workflow would have had. Random if the message had no ID. */
  readonly id: string;
  /** The workflow function that the message was for. */
  readonly functionName: string;
  readonly receivedAt: number;
  readonly error: string;
  /** The message as JSON. Bytes are objects with the single field `base64`. */
  readonly message: unknown;
}

const SERVICE = 'everstep.receiver.dead-letters';

export function toState(letter: DeadLetter): EventDispatchState {
  const { id, functionName, receivedAt, error, message } = letter;
  const value = JSON.stringify({ error, message }, replaceBinary);
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

/** `value` has gone through `toJSON` already, which buffers have. Take the bytes from the holder instead. */
function replaceBinary(this: unknown, key: string, value: unknown): unknown {
  const original = (this as Record<string, unknown>)[key];
  if (original instanceof Uint8Array) return { base64: Buffer.from(original).toString('base64') };
  return typeof value === 'bigint' ? value.toString() : value;
}
