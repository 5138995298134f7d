// `portable_json`: plain JSON that every language reads and writes. What JSON cannot express is converted to the nearest
// form and stays that way: a Date comes back as a string.
import { type JSONValue, PortableWorkflowError, SerializationError, UnreadableValueError } from '../errors/errors.js';
import { copyIfPlain, isRecord, NOT_PLAIN, parseJSON, refusingUnstorable } from './plain-json.js';
import { type Inputs, PORTABLE_FORMAT } from './serializer.js';

/** Values without any JSON form, such as undefined, become null. */
export function encodePortable(value: unknown, checkLoss?: () => void): string {
  return refusingUnstorable(() => {
    const plain = copyIfPlain(value);
    if (plain !== NOT_PLAIN) return JSON.stringify(plain);
    checkLoss?.();
    const text: string | undefined = JSON.stringify(value ?? null, toPortable);
    return text ?? 'null';
  });
}

/** Null if no text is stored. */
export function decodePortable(text: string | null | undefined): unknown {
  return text === null || text === undefined ? null : parseJSON(text, PORTABLE_FORMAT);
}

function toPortable(_key: string, value: unknown): unknown {
  // A Date is a string by now: JSON.stringify has called its toJSON.
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
      `A Map with a key of type ${typeof key} has no portable form. Use strings as keys, or serialization: 'native'.`,
    );
  });
  return Object.fromEntries(entries);
}

export function encodePortableInputs(
  args: readonly unknown[],
  namedArgs?: Record<string, unknown>,
  checkLoss?: () => void,
): string {
  const inputs = namedArgs === undefined ? { positionalArgs: args } : { positionalArgs: args, namedArgs };
  return encodePortable(inputs, checkLoss);
}

/** Any language or the SQL functions may have written it; either part may be missing. */
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
    throw new UnreadableValueError(PORTABLE_FORMAT, text, { reason: 'it is not an error with a message' });
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
