// Converts thrown values to their stored form and back. An Error is stored as its fields, with its cause and inner errors;
// any other thrown value is stored unchanged. Storing an error must never fail, whatever fields it has: see `Detail`.
import { inspect, types } from 'node:util';
import { copyIfPlain, isRecord, NOT_PLAIN } from './plain-json.js';
import { encodePortable } from './portable.js';
import { makeError } from './revived-error.js';

/** 'full' keeps every field of an error. 'plain' keeps plain JSON only, if a field cannot be stored. */
export type Detail = 'full' | 'plain';

/** Bounds chains and trees of causes. Errors beyond it are stored as strings. */
const DESCRIBED_ERRORS_MAX = 100;

const NON_ERROR = 'NonError';
/** Handled by name, or, the last three, dropped: superjson refuses them. */
const SPECIAL_FIELDS = new Set(['name', 'message', 'stack', 'cause', '__proto__', 'constructor', 'prototype']);
/** Fields that are not enumerable on a live error. */
const HIDDEN_FIELDS = new Set(['cause', 'errors']);

interface Describing {
  readonly detail: Detail;
  /** The errors that enclose the current one, to detect cycles. */
  readonly around: Set<Error>;
  count: number;
}

/** What to store of a thrown value in the native format. */
export function describeThrown(thrown: unknown, detail: Detail = 'full'): unknown {
  return describe(thrown, { detail, around: new Set(), count: 0 });
}

function describe(thrown: unknown, describing: Describing): unknown {
  if (isError(thrown)) return describeError(thrown, describing);
  if (typeof thrown === 'function') return `[Function: ${thrown.name}]`;
  if (typeof thrown === 'symbol') return thrown.toString();
  if (describing.detail === 'plain' && copyIfPlain(thrown) === NOT_PLAIN) {
    return { name: NON_ERROR, message: summarize(thrown) };
  }
  // Wrapped, or it would be revived as an Error.
  return isErrorLike(thrown) ? { name: NON_ERROR, message: thrown.message, thrown } : thrown;
}

function describeError(error: Error, describing: Describing): unknown {
  if (describing.around.has(error)) return '[Circular]';
  const name = textOf(error, 'name');
  const message = textOf(error, 'message');
  describing.count += 1;
  if (describing.count > DESCRIBED_ERRORS_MAX) return `${name}: ${message}`;

  const stack = read(error, 'stack');
  const described: Record<string, unknown> = {
    name,
    message,
    stack: typeof stack === 'string' ? stack : `${name}: ${message}`,
  };
  describing.around.add(error);
  // The inner errors of an AggregateError are an own field too, but not enumerable.
  const keys = new Set([...Object.keys(error), ...(Object.hasOwn(error, 'errors') ? ['errors'] : [])]);
  for (const key of keys) {
    if (!SPECIAL_FIELDS.has(key)) keep(described, key, describeField(read(error, key), describing));
  }
  const cause = read(error, 'cause');
  if (cause !== undefined) keep(described, 'cause', describe(cause, describing));
  describing.around.delete(error);
  return described;
}

function describeField(field: unknown, describing: Describing): unknown {
  if (isError(field)) return describeError(field, describing);
  if (typeof field === 'function' || typeof field === 'symbol') return undefined;
  if (Array.isArray(field) && field.some(isError)) {
    return field.map((inner) => describeField(inner, describing) ?? null);
  }
  return describing.detail === 'plain' && copyIfPlain(field) === NOT_PLAIN ? undefined : field;
}

function keep(described: Record<string, unknown>, key: string, field: unknown): void {
  if (field !== undefined) described[key] = field;
}

/** The thrown value of a description. */
export function reviveThrown(described: unknown): unknown {
  if (!isErrorLike(described) || isError(described)) return described;
  if (described.name === NON_ERROR && 'thrown' in described) return described.thrown;
  return reviveError(described);
}

function reviveError(described: Record<string, unknown>): Error {
  const error = makeError(described);
  for (const [key, field] of Object.entries(described)) {
    if (key === 'cause') define(error, key, reviveThrown(field));
    else if (!SPECIAL_FIELDS.has(key)) define(error, key, reviveField(field));
  }
  return error;
}

/** Revives errors in a field or a list. A stack tells them from plain data: only DBOS and Everstep store one. */
function reviveField(field: unknown): unknown {
  if (Array.isArray(field)) {
    return field.map((inner: unknown) => (isDescribedError(inner) ? reviveError(inner) : inner));
  }
  return isDescribedError(field) ? reviveError(field) : field;
}

function isDescribedError(value: unknown): value is Record<string, unknown> {
  return isErrorLike(value) && typeof value.stack === 'string' && !isError(value);
}

function define(error: Error, key: string, value: unknown): void {
  const enumerable = !HIDDEN_FIELDS.has(key);
  Object.defineProperty(error, key, { value, enumerable, writable: true, configurable: true });
}

/** The portable text of a thrown value: name, message, and a code and data if it has them. */
export function encodePortableError(thrown: unknown): string {
  if (!isError(thrown) && !isErrorLike(thrown)) {
    const message = typeof thrown === 'string' ? thrown : summarize(thrown);
    return encodeWithData({ name: NON_ERROR, message }, typeof thrown === 'string' ? undefined : thrown);
  }
  const code = read(thrown, 'code');
  const fields = { name: textOf(thrown, 'name'), message: textOf(thrown, 'message') };
  const isCode = typeof code === 'string' || typeof code === 'number';
  return encodeWithData(isCode ? { ...fields, code } : fields, read(thrown, 'data'));
}

function encodeWithData(fields: Record<string, unknown>, data: unknown): string {
  if (data === undefined) return encodePortable(fields);
  try {
    return encodePortable({ ...fields, data });
  } catch {
    // Keep the error, drop data that has no portable form.
    return encodePortable(fields);
  }
}

function isError(value: unknown): value is Error {
  return value instanceof Error || types.isNativeError(value);
}

function isErrorLike(value: unknown): value is Record<string, unknown> {
  return isRecord(value) && typeof value.name === 'string' && typeof value.message === 'string';
}

/** Reads a field whose getter may throw. */
function read(holder: object, key: string): unknown {
  try {
    return (holder as Record<string, unknown>)[key];
  } catch {
    // Treat it as absent: there is a worse error to report.
    return undefined;
  }
}

function textOf(holder: object, key: 'name' | 'message'): string {
  const text = read(holder, key);
  if (text === undefined || text === null) return key === 'name' ? 'Error' : '';
  return typeof text === 'string' ? text : summarize(text);
}

/** A short text for a value that cannot be stored. */
function summarize(value: unknown): string {
  try {
    return inspect(value, { depth: 1, breakLength: Infinity });
  } catch {
    // The value's own inspect method failed; a poor text is better than none.
    return `[${typeof value}]`;
  }
}
