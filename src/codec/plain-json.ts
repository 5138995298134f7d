// The fast path. Most stored values are plain JSON, for which superjson's walk finds nothing to note and copies the
// value as it is. This finds such values in one cheap walk; everything doubtful is left to superjson. Because the
// copy is what gets written, a getter is read once and the copy can be handed out as the revived value.
import { UnreadableValueError } from '../model/errors/errors.js';

/** What `copyIfPlain` returns for a value that needs superjson. */
export const NOT_PLAIN = Symbol('not plain JSON');

/** Says whether a recipe claims the value. */
export type Claim = (value: unknown) => boolean;

/**
 * A deep copy of a value that is a tree of plain JSON, else `NOT_PLAIN`.
 *
 * Not plain are: what JSON cannot express or changes (undefined, NaN, -0, holes, class instances, functions), objects
 * that are reached twice, the keys that superjson refuses, and whatever one of the claims is true for.
 */
export function copyIfPlain(value: unknown, claims: readonly Claim[] = []): unknown {
  return copyTree(value, claims, new Set());
}

function copyTree(value: unknown, claims: readonly Claim[], seen: Set<object>): unknown {
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
  if (seen.has(value)) return NOT_PLAIN;
  seen.add(value);
  if (Array.isArray(value)) return copyArray(value, claims, seen);
  if (!isPlainObject(value)) return NOT_PLAIN;
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    if (key === '__proto__' || key === 'constructor' || key === 'prototype') return NOT_PLAIN;
    const child = copyTree(value[key], claims, seen);
    if (child === NOT_PLAIN) return NOT_PLAIN;
    copy[key] = child;
  }
  return copy;
}

function copyArray(array: readonly unknown[], claims: readonly Claim[], seen: Set<object>): unknown {
  // A named property of an array is not written, but superjson takes note of what it holds.
  if (Object.keys(array).length !== array.length) return NOT_PLAIN;
  const copy: unknown[] = [];
  for (const element of array) {
    const child = copyTree(element, claims, seen);
    if (child === NOT_PLAIN) return NOT_PLAIN;
    copy.push(child);
  }
  return copy;
}

/** Parses a stored JSON text. The format is only named in the error. */
export function parseJSON(text: string, format: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UnreadableValueError(format, text, { cause: error, reason: 'it is no JSON' });
  }
}

/** True for an object literal or one like it, false for an array or an instance of a class. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
