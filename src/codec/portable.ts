// `portable_json`: plain JSON that every language reads and writes. What JSON cannot express is brought to the
// nearest form it has and stays so: a Date comes back as a text.
import {
  type JSONValue,
  PortableWorkflowError,
  SerializationError,
  UnreadableValueError,
} from '../model/errors/errors.js';
import { copyIfPlain, isRecord, NOT_PLAIN, parseJSON } from './plain-json.js';
import { type Inputs, PORTABLE_FORMAT } from './serializer.js';

/** Values that JSON has no form for at all, such as undefined, become null. */
export function encodePortable(value: unknown): string {
  const plain = copyIfPlain(value);
  if (plain !== NOT_PLAIN) return JSON.stringify(plain);
  const text: string | undefined = JSON.stringify(value ?? null, toPortable);
  return text ?? 'null';
}

/** Where no text is stored the value is null. */
export function decodePortable(text: string | null | undefined): unknown {
  return text === null || text === undefined ? null : parseJSON(text, PORTABLE_FORMAT);
}

function toPortable(_key: string, value: unknown): unknown {
  // A Date is a text by now: JSON.stringify asks for its toJSON first.
  if (typeof value === 'bigint') return value.toString();
  if (value instanceof Map) return mapToObject(value);
  if (value instanceof Set) return [...value];
  if (value instanceof Error) return { name: value.name, message: value.message };
  return value;
}

function mapToObject(map: ReadonlyMap<unknown, unknown>): Record<string, unknown> {
  const entries = [...map].map(([key, value]): [string, unknown] => {
    if (typeof key === 'string') return [key, value];
    throw new SerializationError(
      `A Map with a key of type ${typeof key} has no portable form. Use texts as keys, or serialization: 'native'.`,
    );
  });
  return Object.fromEntries(entries);
}

export function encodePortableInputs(args: readonly unknown[], namedArgs?: Record<string, unknown>): string {
  return encodePortable(namedArgs === undefined ? { positionalArgs: args } : { positionalArgs: args, namedArgs });
}

/** Reads what any language or the SQL functions wrote: either part may be missing. */
export function decodePortableInputs(text: string): Inputs {
  const inputs = parseJSON(text, PORTABLE_FORMAT);
  const args = isRecord(inputs) ? (inputs.positionalArgs ?? []) : undefined;
  if (!isRecord(inputs) || !Array.isArray(args)) {
    throw new UnreadableValueError(PORTABLE_FORMAT, text, { reason: 'it holds no arguments' });
  }
  return isRecord(inputs.namedArgs) ? { args, namedArgs: inputs.namedArgs } : { args };
}

export function decodePortableError(text: string): PortableWorkflowError {
  const stored = parseJSON(text, PORTABLE_FORMAT);
  if (!isRecord(stored) || typeof stored.message !== 'string') {
    throw new UnreadableValueError(PORTABLE_FORMAT, text, { reason: 'it is no error with a message' });
  }
  const { message, name, code, data } = stored;
  const isCode = typeof code === 'string' || typeof code === 'number';
  return new PortableWorkflowError(
    message,
    typeof name === 'string' ? name : 'Error',
    isCode ? code : undefined,
    data as JSONValue | undefined,
  );
}
