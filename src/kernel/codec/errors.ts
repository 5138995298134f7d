// Converts thrown values to their stored form and back. An Error is stored as its fields, with its cause and inner errors,
// in the form that DBOS gives them; what that form lacks is in a field of its own. Any other thrown value is stored
// unchanged. Storing an error must never fail, whatever fields it has: see `Describing.canStore`.
import { inspect, types } from 'node:util';
import { type ErrorClasses, type KnownErrors, lineOf, type StoredClass } from './error-classes.js';
import { isPlainObject, isRecord } from './plain-json.js';
import { encodePortable } from './portable.js';
import { makeError } from './revived-error.js';

/** The name of a recipe that claims an error, and what it made of it. */
export type Claimed = readonly [recipe: string, stored: unknown];

export interface Describing {
  readonly known: KnownErrors;
  /** Classes that the step knows. */
  readonly given?: ErrorClasses | undefined;
  /** What a recipe of the application makes of an error, if one claims it. */
  readonly claim: (error: Error) => Claimed | undefined;
  /** Whether a field can be stored. Of one that cannot, the parts are kept that can. */
  readonly canStore: (field: unknown) => boolean;
  /** Called with the name of a class that other processes do not know. */
  readonly onUnknown?: ((name: string) => void) | undefined;
}

export interface Reviving {
  readonly known: KnownErrors;
  readonly given?: ErrorClasses | undefined;
  /** The error is being stored, not read back, so its class is certain. */
  readonly isLive?: boolean | undefined;
  /** Undefined if there is no such recipe. */
  readonly reclaim: (claimed: Claimed) => unknown;
}

/** Bounds chains and trees of causes. Errors beyond it are stored as strings. */
const DESCRIBED_ERRORS_MAX = 100;
/** Bounds the search for the parts of a field that can be stored. */
const FIELD_DEPTH_MAX = 20;

const NON_ERROR = 'NonError';
/** What only we read of an error: its class, and what is not in its own enumerable fields. */
const MORE = '__everstep';
/** Superjson refuses them. */
const REFUSED_KEYS = new Set(['__proto__', 'constructor', 'prototype']);
/** Handled by name, or dropped. */
const SPECIAL_FIELDS = new Set(['name', 'message', 'stack', 'cause', MORE, ...REFUSED_KEYS]);
/** Fields that are not enumerable on a live error. */
const HIDDEN_FIELDS = new Set(['cause', 'errors']);
/** Where an error was made, in runtimes that add such fields. Not enumerable. */
const ENGINE_FIELDS = new Set(['line', 'column', 'sourceURL', 'originalLine', 'originalColumn']);

interface More {
  readonly names?: readonly string[];
  readonly seen?: string;
  /** Own fields that are not enumerable. */
  readonly hidden?: readonly string[];
  /** What the prototypes say: getters, which may read private fields, and constants. */
  readonly inherited?: Readonly<Record<string, unknown>>;
  readonly claimed?: Claimed;
}

/** What to store of a thrown value in the native format. */
export function describeThrown(thrown: unknown, describing: Describing): unknown {
  return new Description(describing).of(thrown);
}

class Description {
  readonly #options: Describing;
  /** The errors that enclose the current one, to detect cycles. */
  readonly #around = new Set<unknown>();
  #count = 0;

  constructor(options: Describing) {
    this.#options = options;
  }

  of(thrown: unknown): unknown {
    if (isError(thrown)) return this.#ofError(thrown);
    if (typeof thrown === 'function') return `[Function: ${thrown.name}]`;
    if (typeof thrown === 'symbol') return thrown.toString();
    if (!this.#options.canStore(thrown)) return { name: NON_ERROR, message: summarize(thrown) };
    // Wrapped, or it would be revived as an Error.
    return isErrorLike(thrown) ? { name: NON_ERROR, message: thrown.message, thrown } : thrown;
  }

  #ofError(error: Error): unknown {
    if (this.#around.has(error)) return '[Circular]';
    const name = textOf(error, 'name');
    const message = textOf(error, 'message');
    this.#count += 1;
    if (this.#count > DESCRIBED_ERRORS_MAX) return `${name}: ${message}`;

    const { known, given, claim, onUnknown } = this.#options;
    const claimed = claim(error);
    const stored = known.describe(error, given);
    if (stored.seen !== undefined && !claimed) onUnknown?.(stored.names[0] ?? '');
    const stack = read(error, 'stack');
    const described: Record<string, unknown> = {
      name,
      message,
      stack: typeof stack === 'string' ? stack : `${name}: ${message}`,
    };
    this.#around.add(error);
    const keys = Object.getOwnPropertyNames(error).filter((key) => !SPECIAL_FIELDS.has(key) && !isOfEngine(error, key));
    for (const key of keys) keep(described, key, this.#ofField(read(error, key)));
    const cause = read(error, 'cause');
    if (cause !== undefined) keep(described, 'cause', this.of(cause));
    const more = { ...this.#more(error, described, stored), ...(claimed && { claimed }) };
    if (Object.keys(more).length > 0) described[MORE] = more;
    this.#around.delete(error);
    return described;
  }

  #more(error: Error, described: Record<string, unknown>, { names, seen }: StoredClass): More {
    const { known, given } = this.#options;
    const hidden = Object.keys(described).filter(
      (key) => !SPECIAL_FIELDS.has(key) && !HIDDEN_FIELDS.has(key) && !isEnumerable(error, key),
    );
    const inherited = this.#inherited(error);
    return {
      ...(names.join() !== known.namesByFields(described, given).join() && { names }),
      ...(seen !== undefined && { seen }),
      ...(hidden.length > 0 && { hidden }),
      ...(Object.keys(inherited).length > 0 && { inherited }),
    };
  }

  #inherited(error: Error): Record<string, unknown> {
    const inherited: Record<string, unknown> = {};
    for (const at of lineOf(error).prototypes) {
      for (const key of Object.getOwnPropertyNames(at)) {
        if (SPECIAL_FIELDS.has(key) || key in inherited || Object.hasOwn(error, key)) continue;
        keep(inherited, key, this.#ofField(read(error, key)));
      }
    }
    return inherited;
  }

  #ofField(field: unknown): unknown {
    if (isError(field)) return this.#ofError(field);
    if (typeof field === 'function' || typeof field === 'symbol') return undefined;
    if (Array.isArray(field) && field.some(isError)) return field.map((inner) => this.#ofField(inner) ?? null);
    return this.#storablePartOf(field);
  }

  #storablePartOf(field: unknown, depth = 0): unknown {
    if (this.#options.canStore(field)) return field;
    if (depth === FIELD_DEPTH_MAX || this.#around.has(field)) return undefined;
    this.#around.add(field);
    try {
      if (Array.isArray(field)) return field.map((part) => this.#storablePartOf(part, depth + 1) ?? null);
      if (!isPlainObject(field)) return undefined;
      const kept: Record<string, unknown> = {};
      for (const key of Object.keys(field)) {
        if (!REFUSED_KEYS.has(key)) keep(kept, key, this.#storablePartOf(read(field, key), depth + 1));
      }
      return kept;
    } finally {
      this.#around.delete(field);
    }
  }
}

function keep(described: Record<string, unknown>, key: string, field: unknown): void {
  if (field !== undefined) described[key] = field;
}

function isEnumerable(error: Error, key: string): boolean {
  return Object.prototype.propertyIsEnumerable.call(error, key);
}

function isOfEngine(error: Error, key: string): boolean {
  return ENGINE_FIELDS.has(key) && !isEnumerable(error, key);
}

/** The thrown value of a description. */
export function reviveThrown(described: unknown, reviving: Reviving): unknown {
  if (!isErrorLike(described) || isError(described)) return described;
  if (described.name === NON_ERROR && 'thrown' in described) return described.thrown;
  return reviveError(described, reviving);
}

function reviveError(described: Record<string, unknown>, reviving: Reviving): Error {
  const { known, given, isLive } = reviving;
  const more = readMore(described);
  const claimed = more.claimed && reviving.reclaim(more.claimed);
  if (claimed instanceof Error) return withStack(claimed, described);
  const { names = known.namesByFields(described, given), seen, hidden = [], inherited = {} } = more;
  const { prototype, unknown } = known.find({ names, seen }, { given, isLive });
  const error = makeError(described, prototype);
  for (const [key, field] of Object.entries(described)) {
    if (key === 'cause') define(error, key, reviveThrown(field, reviving));
    else if (!SPECIAL_FIELDS.has(key)) define(error, key, reviveField(field, reviving), !hidden.includes(key));
  }
  for (const [key, field] of Object.entries(inherited)) {
    const value = reviveField(field, reviving);
    if (!isSame(read(error, key), value)) define(error, key, value, false);
  }
  unknown?.attachTo(error);
  return error;
}

/** Anything may stand there: other programs write rows too. */
function readMore(described: Record<string, unknown>): More {
  const more = described[MORE];
  if (!isRecord(more)) return {};
  const { names, seen, hidden, inherited, claimed } = more;
  return {
    ...(isTexts(names) && names.length > 0 && { names }),
    ...(typeof seen === 'string' && { seen }),
    ...(isTexts(hidden) && { hidden }),
    ...(isRecord(inherited) && { inherited }),
    ...(Array.isArray(claimed) && typeof claimed[0] === 'string' && { claimed: [claimed[0], claimed[1]] as const }),
  };
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

/** The stack of the recipe's call would be misleading. */
function withStack(error: Error, { stack }: Record<string, unknown>): Error {
  if (typeof stack === 'string') define(error, 'stack', stack, false);
  return error;
}

/** Revives errors in a field or a list. A stack tells them from plain data: only DBOS and Everstep store one. */
function reviveField(field: unknown, reviving: Reviving): unknown {
  if (Array.isArray(field)) {
    return field.map((inner: unknown) => (isDescribedError(inner) ? reviveError(inner, reviving) : inner));
  }
  return isDescribedError(field) ? reviveError(field, reviving) : field;
}

function isDescribedError(value: unknown): value is Record<string, unknown> {
  return isErrorLike(value) && typeof value.stack === 'string' && !isError(value);
}

/** A getter may make a new object each time. */
function isSame(left: unknown, right: unknown): boolean {
  return Object.is(left, right) || (typeof left === 'object' && typeof right === 'object' && left !== null);
}

function define(error: Error, key: string, value: unknown, isShown = true): void {
  const enumerable = isShown && !HIDDEN_FIELDS.has(key);
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
