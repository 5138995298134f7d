// Stored values as the API returns them. Values may not fit into JSON: dates, maps, big integers, errors. They are
// converted to the nearest JSON form, with a flag for whether that is exact, and a readable text if it is not.
import { inspect } from 'node:util';
import { excerptOf, type ExcerptLimits } from '../../../kernel/base/excerpt.js';
import { anything, boolean, optional, record, string } from '../../../kernel/check/validation.js';

export interface ShownValue {
  readonly json: unknown;
  /** Whether `json` is the value itself rather than its nearest form. */
  readonly isExact: boolean;
  /** As Node prints it; only if `json` is not exact. */
  readonly text?: string;
  /** Whether `json` is only a part of the value. */
  readonly isTruncated?: boolean;
}

const ABOUT =
  'A stored value. If `json` is not exact, it is the nearest JSON form, and `text` is how Node prints it. If it is ' +
  'truncated, parts were left out because the value is too large.';

export const shownValue = record({
  json: anything,
  isExact: boolean,
  text: optional(string({ max: 1_000_000 })),
  isTruncated: optional(boolean),
})
  .about(ABOUT)
  .named('Value');

const JSON_LIMITS: ExcerptLimits = { nodes: 20_000, characters: 65_536, depth: 100 };
/** Of a download. A short text may stand for a value that would never be written to its end. */
const WHOLE_LIMITS: ExcerptLimits = { nodes: 5_000_000, characters: 100_000_000, depth: 1000 };
/** The text is for reading. */
const TEXT_LIMITS: ExcerptLimits = { nodes: 10_000, characters: 65_536, depth: 100 };

export function showValue(value: unknown): ShownValue {
  const { value: excerpt, isTruncated } = excerptOf(value, JSON_LIMITS);
  const note: Note = { isExact: !isTruncated };
  const json = toJSON(excerpt, note, []);
  if (note.isExact) return { json, isExact: true };
  return { json, isExact: false, text: inspectValue(value), ...(isTruncated && { isTruncated }) };
}

/** The nearest JSON form of the whole value; undefined if it is too large. */
export function wholeJSON(value: unknown): { readonly json: unknown } | undefined {
  const { value: whole, isTruncated } = excerptOf(value, WHOLE_LIMITS);
  return isTruncated ? undefined : { json: toJSON(whole, { isExact: true }, []) ?? null };
}

/** The value as Node prints it, up to a size. */
export function inspectValue(value: unknown): string {
  try {
    const excerpt = excerptOf(value, TEXT_LIMITS).value;
    const text = inspect(excerpt, { depth: null, maxArrayLength: null, maxStringLength: null });
    return text.slice(0, TEXT_LIMITS.characters);
  } catch {
    // The value's custom inspect function threw.
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
  // fromEntries defines instead of assigning: a field may be named __proto__.
  return Object.fromEntries(entries.map(([key, child]) => [key, inner(child)]));
}

/** An object if all keys are strings, else an array of pairs. */
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
