// The fast path. Most stored values are plain JSON, which superjson would walk for nothing. This recognises and copies them
// in one cheap walk; everything else is left to superjson. The copy is what gets written, so getters are read once and the
// copy can be used as the revived value.
import { SerializationError, UnreadableValueError } from '../errors/errors.js';

/** What `copyIfPlain` returns for a value that needs superjson. */
export const NOT_PLAIN = Symbol('not plain JSON');

/** Whether a recipe claims the value. */
export type Claim = (value: unknown) => boolean;

/**
 * A deep copy of a value that is a tree of plain JSON, else `NOT_PLAIN`.
 *
 * Not plain are values that JSON cannot express or changes (undefined, NaN, -0, holes, class instances, functions),
 * objects reached twice, keys that superjson refuses, and values that a recipe claims.
 */
export function copyIfPlain(value: unknown, claims: readonly Claim[] = []): unknown {
  return copyTree(value, claims, undefined);
}

/** `seen` is made at the first object: most values are a string, a number or nothing. */
function copyTree(value: unknown, claims: readonly Claim[], seen: Set<object> | undefined): unknown {
  for (const claim of claims) if (claim(value)) return NOT_PLAIN;
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0) ? value : NOT_PLAIN;
    case 'object':
      break;
    default:
      return NOT_PLAIN;
  }
  if (value === null) return null;
  if (seen?.has(value)) return NOT_PLAIN;
  const reached = seen?.add(value) ?? new Set([value]);
  if (Array.isArray(value)) return copyArray(value, claims, reached);
  if (!isPlainObject(value)) return NOT_PLAIN;
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    if (key === '__proto__' || key === 'constructor' || key === 'prototype') return NOT_PLAIN;
    const child = copyTree(value[key], claims, reached);
    if (child === NOT_PLAIN) return NOT_PLAIN;
    copy[key] = child;
  }
  return copy;
}

function copyArray(array: readonly unknown[], claims: readonly Claim[], seen: Set<object>): unknown {
  // JSON drops named properties of an array, but superjson annotates their values.
  if (Object.keys(array).length !== array.length) return NOT_PLAIN;
  const copy: unknown[] = [];
  for (const element of array) {
    const child = copyTree(element, claims, seen);
    if (child === NOT_PLAIN) return NOT_PLAIN;
    copy.push(child);
  }
  return copy;
}

/** Values that cannot be stored are the caller's mistake, which a stack overflow or superjson's error does not say. */
export function refusingUnstorable<T>(write: () => T): T {
  try {
    return write();
  } catch (cause) {
    if (cause instanceof RangeError) {
      throw new SerializationError('The value cannot be stored: it is nested too deeply, or too long.', { cause });
    }
    if (cause instanceof Error && cause.message.startsWith('Detected property ')) {
      throw new SerializationError(
        'The value cannot be stored: it has a property named __proto__, constructor or prototype. ' +
          "Rename it, or use serialization: 'portable'.",
        { cause },
      );
    }
    throw cause;
  }
}

/** Parses a stored JSON text. The format's name is for the error. */
export function parseJSON(text: string, format: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UnreadableValueError(format, text, { cause: error, reason: 'it is not JSON' });
  }
}

/** True for object literals and the like, false for arrays and class instances. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
