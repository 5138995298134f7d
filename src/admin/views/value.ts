// Values of workflows as clients see them. Stored values may be more than JSON can say: dates, maps, big numbers, errors.
// They are shown in the nearest JSON form, with a note whether that is all there is, and as a text for people.
import { inspect } from 'node:util';
import { anything, boolean, optional, record, string } from '../../model/validation/validation.js';

export interface ShownValue {
  readonly json: unknown;
  /** Whether `json` is the value itself, and not its nearest form. */
  readonly isExact: boolean;
  /** For people; only where `json` is not exact. */
  readonly text?: string;
}

const ABOUT = 'A stored value. `json` is the value, or its nearest JSON form; then `text` is how Node prints it.';

export const shownValue = record({ json: anything, isExact: boolean, text: optional(string({ max: 1_000_000 })) })
  .about(ABOUT)
  .named('Value');

/** The text is for reading; whoever wants all of a large value takes `json`. */
const TEXT_MAX = 65_536;

export function showValue(value: unknown): ShownValue {
  const note: Note = { isExact: true };
  const json = toJSON(value, note, []);
  return note.isExact
    ? { json, isExact: true }
    : { json, isExact: false, text: inspectValue(value).slice(0, TEXT_MAX) };
}

/** The value as Node prints it, however deep it is. */
export function inspectValue(value: unknown): string {
  try {
    return inspect(value, { depth: null, maxArrayLength: null, maxStringLength: null });
  } catch {
    // The value's own way to be printed has failed.
    return '[cannot be printed]';
  }
}

interface Note {
  isExact: boolean;
}

function toJSON(value: unknown, note: Note, around: readonly object[]): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0) ? value : nearest(note, inspect(value));
    case 'undefined':
      return nearest(note, null);
    case 'bigint':
      return nearest(note, value.toString());
    case 'object':
      return value === null ? null : objectToJSON(value, note, around);
    default:
      return nearest(note, inspect(value));
  }
}

function nearest(note: Note, json: unknown): unknown {
  note.isExact = false;
  return json;
}

function objectToJSON(value: object, note: Note, around: readonly object[]): unknown {
  if (around.includes(value)) return nearest(note, '[Circular]');
  const inner = (child: unknown): unknown => toJSON(child, note, [...around, value]);
  if (Array.isArray(value)) return value.map(inner);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return fieldsToJSON(Object.entries(value), inner);
  note.isExact = false;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Map) return mapToJSON(value, inner);
  if (value instanceof Set) return [...value].map(inner);
  if (value instanceof Error) return errorToJSON(value, inner);
  if (value instanceof RegExp || value instanceof URL) return String(value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  return fieldsToJSON(Object.entries(value), inner);
}

function fieldsToJSON(
  entries: readonly (readonly [string, unknown])[],
  inner: (child: unknown) => unknown,
): Record<string, unknown> {
  // Defined and not assigned: a field may be called __proto__.
  return Object.fromEntries(entries.map(([key, child]) => [key, inner(child)]));
}

/** An object where all keys are texts, else a list of pairs. */
function mapToJSON(map: ReadonlyMap<unknown, unknown>, inner: (child: unknown) => unknown): unknown {
  const entries = [...map];
  return entries.every((entry): entry is [string, unknown] => typeof entry[0] === 'string')
    ? fieldsToJSON(entries, inner)
    : entries.map(([key, child]) => [inner(key), inner(child)]);
}

function errorToJSON(error: Error, inner: (child: unknown) => unknown): unknown {
  const { name, message, stack, cause } = error;
  const hidden = Object.entries({ name, message, stack, cause }).filter(([, field]) => field !== undefined);
  return fieldsToJSON([...hidden, ...Object.entries(error)], inner);
}
